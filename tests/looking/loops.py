"""Small models of plain PyTorch, and loops that train them, for tests."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import tfm_core

WORDS = ("a", "b", "c", "d", "e", "f", "g")
HEADS, LAYERS = 3, 2


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        shape = (batch, length, HEADS, width // HEADS)
        q, k, v = (part.view(shape).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).reshape(x.shape))


class Writer(nn.Module):
    """A causal model of tokens."""

    def __init__(self, width: int = 15) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(len(WORDS), width), nn.Linear(width, len(WORDS))
        self.blocks = nn.ModuleList(Block(width) for _ in range(LAYERS))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def probe(n: int = 2, length: int = 5) -> Tensor:
    return (torch.arange(n)[:, None] + torch.arange(length)) % len(WORDS)


def named(ids: Tensor) -> list[list[str]]:
    return [[WORDS[i] for i in row] for row in ids.tolist()]


def trained(store, *, steps: int = 6, every: int = 2, model: nn.Module | None = None, **given):
    """Train a writer in a loop of its own for a few steps; return its run."""
    torch.manual_seed(0)
    model = Writer() if model is None else model
    learner = torch.optim.SGD(model.parameters(), 0.5)
    ids = probe()
    given = {"tokens": named(ids), "steps": steps, "every": every, **given}
    with tfm_core.look.training(model, probe=ids, store=store, **given) as watched:
        for _ in range(steps):
            logits = model(ids)[:, :-1]
            loss = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:])
            learner.zero_grad()
            loss.backward()
            learner.step()
            right = logits.argmax(-1) == ids[:, 1:]
            watched.step(loss, accuracy=right.float().mean(), learning_rate=0.5)
        watched.measured(loss, accuracy=1.0)
    return watched.run
