"""One short file a command; installed as recsys.pipelines."""
