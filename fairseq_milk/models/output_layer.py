"""The output layer, which may share its weight with an embedding."""

from typing import Optional

import torch
from torch import Tensor, nn

from ..functional.product import DecodingWeight, ProductPrecision


class OutputLayer(nn.Module):
    """logits = W f + b.  With a shared embedding W is the embedding, after a projection to its size."""

    def __init__(
        self, features: int, words: int, embedding: Optional[nn.Embedding], products: ProductPrecision
    ) -> None:
        super().__init__()
        self.products, self.prepared = products, DecodingWeight(products)
        shared = embedding is not None
        self.projection = nn.Linear(features, embedding.embedding_dim, bias=False) if embedding is not None else None
        self.weight = embedding.weight if embedding is not None else nn.Parameter(torch.empty(words, features))
        self.bias = nn.Parameter(torch.zeros(words))
        if not shared:
            nn.init.uniform_(self.weight, -0.04, 0.04)

    def project(self, features: Tensor) -> Tensor:
        """The input of the product with the weight.  (..., features) -> (..., weight.size(1))."""
        return features if self.projection is None else self.products.linear(features, self.projection.weight)

    def factor(self) -> Tensor:
        """The weight as a factor of a product.  (words, weight.size(1))."""
        return self.products.operand(self.weight)

    def train(self, mode: bool = True) -> "OutputLayer":
        self.prepared.forget()
        return super().train(mode)

    def one_step(self, features: Tensor) -> Tensor:
        """The logits of one target token per sentence, without gradients.  (B, features) -> (B, words)."""
        return self.prepared.linear(self.project(features), self.weight, bias=self.bias)

    def forward(self, features: Tensor) -> Tensor:
        return self.products.linear(self.project(features), self.weight, self.bias)
