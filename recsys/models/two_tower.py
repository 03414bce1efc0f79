"""The two-tower model: queries and candidates as vectors whose inner product is the score.

Dimensions: B queries, C candidates, L items in a history, D embedding width, T width in training
(D, or D + 1 with an item bias), K width of the ridge part (0 without), E output width (T + K).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from recsys.data import FeatureTable
from recsys.foundations import ArgumentError, ConfigError, ShapeError, check_shape
from recsys.models.embeddings import EmbeddingTable
from recsys.models.feature_encoder import to_tensor
from recsys.models.history_encoder import ItemTable, QueryPlaces
from recsys.models.inputs import QueryInputs
from recsys.models.repeats import Repeats
from recsys.models.ridge_part import RidgePart
from recsys.models.spec import ModelSpec
from recsys.models.temperature import FixedTemperature, LearnedTemperature
from recsys.models.tower_table import TowerTable, VectorTable, embed_catalogue
from recsys.models.towers import ItemTower, UserTower


class TwoTower(nn.Module):
    """Two towers and the temperature of their scores; `build_two_tower` makes one.

    The score of a query for a candidate is the inner product of their embeddings, in training as
    in search. With `spec.normalize` both have length 1 before the bias is added; the bias is then
    one more dimension, against a 1 in every query.

    A ridge part is added outside training alone: its vectors stand behind those of the towers, so
    that the score of search is the towers' plus the ridge part's. The towers train as if it were
    not there: what they learn apart adds to it, and what they learn on top of it does not.

    Where histories read the item tower (`spec.histories_read_tower`), training embeds the items of
    a step's histories with it. At search they read the vectors of the whole catalogue, computed
    once and kept until training goes on or other values are loaded. With `spec.normalize` these
    have length 1 too: an item of many or rare values does not outweigh the others. An item of which
    that tower knows nothing, no id and no feature, is left out of histories.

    Args:
        spec: What the model is made of.
        user_tower: The user tower.
        item_tower: The item tower.
        ridge: The ridge part, if there is one.
        item_features: A row for each item, and perhaps more behind them; only histories that read
            the item tower need them. They may be set later, and are no part of the state.

    Attributes:
        num_history_items: Rows below it may stand in histories. Where histories read the item
            tower it may be set above the number of items, to `item_features` of items that came
            after the training.
    """

    history_vectors: Tensor | None

    def __init__(
        self,
        spec: ModelSpec,
        user_tower: UserTower,
        item_tower: ItemTower,
        ridge: RidgePart | None = None,
        item_features: FeatureTable | None = None,
    ) -> None:
        super().__init__()
        self.spec, self.item_features = spec, item_features
        self.user_tower, self.item_tower, self.ridge = user_tower, item_tower, ridge
        self.temperature: FixedTemperature | LearnedTemperature = FixedTemperature(spec.temperature)
        if spec.learn_temperature:
            self.temperature = LearnedTemperature(
                spec.temperature, low=spec.min_temperature, high=spec.max_temperature
            )
        self.register_buffer("history_vectors", None, persistent=False)  # [N, D]
        self.num_history_items = item_tower.rows.num_ids
        self._told: tuple[FeatureTable, Tensor] | None = None  # of which items features tell

    @property
    def device(self) -> torch.device:
        """Where the parameters lie."""
        return self.item_tower.rows.trained.device  # a walk over all parameters costs a step much

    @property
    def output_dim(self) -> int:
        """Width of the embeddings outside training: E."""
        return self.training_dim + self.spec.ridge_dim

    @property
    def training_dim(self) -> int:
        """Width of the embeddings in training, which the others begin with: T."""
        return self.spec.embedding_dim + self.spec.item_bias

    @property
    def bias_place(self) -> int | None:
        """Where in an item's embedding its bias stands; None without biases."""
        return self.spec.embedding_dim if self.spec.item_bias else None

    @property
    def history_length(self) -> int:
        """Items of a history that the model looks at; 0 if none."""
        return 0 if self.user_tower.history is None else self.user_tower.history.length

    @property
    def num_interests(self) -> int:
        """Vectors of a query, of which the best matching one scores a candidate: M."""
        return 1 if self.user_tower.history is None else self.user_tower.history.num_interests

    @property
    def repeats(self) -> Repeats | None:
        """What is added to the scores of items that the user had; None: nothing.

        Like a ridge part it is there outside training alone, but in no embedding.
        """
        weight, decay = self.spec.repeats_weight, self.spec.repeats_decay
        return Repeats(weight, decay, self.history_length) if weight > 0 else None

    @property
    def uses_times(self) -> bool:
        """Whether the model reads when the items of a history were met."""
        return self.user_tower.history is not None and self.user_tower.history.uses_times

    @property
    def takes_places(self) -> bool:
        """Whether the model reads a history once for many queries along it."""
        return self.user_tower.history is not None and self.user_tower.history.is_causal

    def embed_queries(self, inputs: QueryInputs) -> Tensor:
        """Embed queries: [B, E], with M interests [B, M, E], on the model's device.

        In training the last dimension is T.

        Raises:
            ArgumentError: A history holds a row that is no item, or there are places and the model
                takes none, or has a ridge part and does not train, or histories read the item
                tower and there are no `item_features`.
        """
        num_items = self.num_history_items
        histories = inputs.histories[:, : self.history_length]
        if histories.size and histories.max() >= num_items:
            raise ArgumentError(
                f"`histories` must hold rows below {num_items}, got {histories.max()}."
            )
        item_rows = to_tensor(histories, self.device, torch.int64)
        embeddings = self.user_tower(
            to_tensor(inputs.user_rows, self.device, torch.int64),
            inputs.features,
            inputs.context,
            histories=item_rows,
            known=self._known_to_history(item_rows),
            times=self._times(inputs),
            places=self._places(inputs),
            item_table=self._item_table(),
        )  # [B, D] or [B, M, D]
        parts = [self._scaled(embeddings)]
        if self.spec.item_bias:
            parts.append(torch.ones_like(embeddings[..., :1]))
        if self.ridge is not None and not self.training:
            if inputs.places is not None:
                raise ArgumentError("`places` must be None where a ridge part reads histories.")
            solved = self.ridge.embed_histories(item_rows, self.item_tower.rows.known(item_rows))
            solved = solved if embeddings.dim() == 2 else solved[:, None]  # of [B, K]
            parts.append(solved.expand(*embeddings.shape[:-1], -1))
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)

    def _item_table(self) -> ItemTable | None:
        """Give what a history without a table of its own reads."""
        if not self.spec.histories_read_tower:
            return self.item_tower.ids
        if not self.training:
            return VectorTable(self.keep_history_vectors())
        return TowerTable(
            self._embed_for_histories(), dim=self.spec.embedding_dim, device=self.device
        )

    def keep_history_vectors(self) -> Tensor:
        """Embed the catalogue for histories that read the item tower, unless that is done.

        The first queries do it by themselves; this is for those who want it done before.

        Returns:
            [num_history_items, D], kept until `train` is called or other values are loaded.

        Raises:
            ArgumentError: The model trains, or there are no `item_features`.
        """
        if self.training:
            raise ArgumentError("The vectors of histories must not be kept while a model trains.")
        if self.history_vectors is None:
            embed, num_items = self._embed_for_histories(), self.num_history_items
            self.history_vectors = embed_catalogue(embed, num_items, self.device)
        return self.history_vectors

    def counts_in_history(self, item_rows: Tensor) -> Tensor:
        """Tell which items of a history say anything, to the history encoder or the ridge part.

        Args:
            item_rows: int64, rows of items; below 0 is none.

        Returns:
            bool, of the same shape.
        """
        known = self._known_to_history(item_rows)
        return known if self.ridge is None else known | self.item_tower.rows.known(item_rows)

    def _known_to_history(self, item_rows: Tensor) -> Tensor:
        """Tell which items the history encoder reads, likewise."""
        if self.spec.histories_read_tower:
            return self._known_to_tower(item_rows)
        return self.item_tower.rows.known(item_rows)

    def _known_to_tower(self, item_rows: Tensor) -> Tensor:
        """Tell of which items the item tower knows anything: bool, the shape of `item_rows`."""
        features, tower = self._features_of_items(), self.item_tower
        if self._told is None or self._told[0] is not features:
            by_features = features.known(tower.features.names)[: self.num_history_items]
            self._told = features, torch.from_numpy(by_features)
        told = self._told[1].to(item_rows.device)
        known: Tensor = told[item_rows.clamp(min=0)] & (item_rows >= 0)
        return known if tower.ids is None else known | tower.rows.known(item_rows)

    def _embed_for_histories(self) -> Callable[[Tensor], Tensor]:
        """Give what embeds items by row, [B] to [B, D], as candidates are but for the bias."""
        features = self._features_of_items()

        def embed(rows: Tensor) -> Tensor:
            vectors, _ = self.item_tower(rows, features.take(rows.cpu().numpy()))
            return self._scaled(vectors)

        return embed

    def _features_of_items(self) -> FeatureTable:
        num_items, features = self.num_history_items, self.item_features
        if features is None or len(features) < num_items:
            given = "none" if features is None else len(features)
            raise ArgumentError(
                f"`item_features` must have at least {num_items} rows where histories read the "
                f"item tower, got {given}."
            )
        return features

    def train(self, mode: bool = True) -> Self:
        """Enter training, or leave it; entering lets go of the kept vectors of histories."""
        if mode:
            self.history_vectors = None
        return super().train(mode)

    def set_ridge_scale(self, scale: float) -> None:
        """Multiply the scores of the ridge part by another number; the specification says which.

        Raises:
            ArgumentError: There is no ridge part.
        """
        if self.ridge is None:
            raise ArgumentError("`scale` must be given to a model with a ridge part alone.")
        self.spec = replace(self.spec, ridge_scale=scale)
        self.ridge.scale = scale

    def set_repeats(self, weight: float, decay: float) -> None:
        """Add another bonus to the scores of items that the user had; the specification says which.

        Raises:
            ConfigError: One is out of range, or the model reads no history.
        """
        self.spec = replace(self.spec, repeats_weight=weight, repeats_decay=decay)

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **options: Any) -> Any:
        """Load values; lets go of the kept vectors of histories, which are those of others."""
        self.history_vectors = None
        return super().load_state_dict(state_dict, *args, **options)

    def _times(self, inputs: QueryInputs) -> Tensor | None:
        if inputs.times is None or not self.uses_times:
            return None
        return to_tensor(inputs.times[:, : self.history_length], self.device, torch.int64)

    def _places(self, inputs: QueryInputs) -> QueryPlaces | None:
        places, width = inputs.places, inputs.histories.shape[1]
        if places is None:
            return None
        if not self.takes_places:
            raise ArgumentError(
                "`places` must be None: no gru and no transformer reads the histories."
            )
        if width > self.history_length:
            raise ShapeError(
                f"`histories` must have at most {self.history_length} columns where there are "
                f"places, got {width}."
            )
        for name, values, bound in (
            ("rows", places.rows, len(inputs.histories)),
            ("skipped", places.skipped, width + 1),
        ):
            if values.size and not (values.min() >= 0 and values.max() < bound):
                raise ArgumentError(
                    f"`places.{name}` must be at least 0 and below {bound}, "
                    f"got {values.min()} to {values.max()}."
                )
        rows, skipped = (
            to_tensor(values, self.device, torch.int64) for values in (places.rows, places.skipped)
        )
        return QueryPlaces(rows, skipped)

    def embed_candidates(self, rows: NDArray[np.int64] | Tensor, features: FeatureTable) -> Tensor:
        """Embed candidates: [C, E], in training [C, T], on the model's device.

        Args:
            rows: [C], int64; -1 or num_items and above: an item that the model does not know.
            features: C rows, those of the candidates.

        Raises:
            ShapeError: The two disagree.
        """
        if isinstance(rows, np.ndarray):
            rows = to_tensor(rows, self.device, torch.int64)
        check_shape("rows", rows, None)
        if len(features) != len(rows):
            raise ShapeError(f"`features` must have {len(rows)} rows, got {len(features)}.")
        rows = rows.to(self.device)
        embeddings, bias = self.item_tower(rows, features)
        parts = [self._scaled(embeddings), *([] if bias is None else [bias])]
        if self.ridge is not None and not self.training:
            parts.append(self.ridge.embed_items(rows))
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def _scaled(self, embeddings: Tensor) -> Tensor:
        if not self.spec.normalize:
            return embeddings
        # The small number keeps the gradient finite at zero; at length 1 it is below rounding.
        squares = embeddings.square().sum(dim=-1, keepdim=True)
        return embeddings * torch.rsqrt(squares + 1e-8)

    @torch.no_grad()
    def start_at_popularity(self, item_counts: NDArray[np.int64]) -> None:
        """Let the item biases begin at the log of the items' shares of the training events.

        With the vectors near 0 the model then begins as the unigram model, which a loss that is
        trained towards log P or log-odds would else have to learn first. An item without events
        begins as one with half an event.

        Args:
            item_counts: [num_items].

        Raises:
            ConfigError: The model has no item biases.
            ShapeError: There is not one count an item.
        """
        if self.item_tower.bias is None:
            raise ConfigError("model.item_bias must be true for biases to begin anywhere.")
        check_shape("item_counts", item_counts, self.item_tower.rows.num_ids)
        counts = np.append(np.maximum(item_counts, 0.5), 0.5)  # the last: unknown items
        shares = torch.from_numpy(counts / counts[:-1].sum())
        biases = (shares.log() * self.temperature().detach().double().cpu())[:, None]
        self.item_tower.bias.weight.copy_(biases)

    def tables(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Give name and values of each embedding table, the parameters with sparse gradients."""
        for name, module in self.named_modules():
            if isinstance(module, EmbeddingTable):
                yield f"{name}.weight", module.weight
