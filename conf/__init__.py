"""The value of every setting, in Hydra groups; installed as recsys.conf."""
