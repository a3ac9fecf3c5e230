"""Does cautious weight decay help this small CNN on made-up images? The study is in ./compare-cnn."""
import cautious
import torch
from torch import nn
from torch.nn.functional import cross_entropy

PATTERNS = torch.randn(10, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def images(count, random):
    labels = torch.randint(10, (count,), generator=random)
    return PATTERNS[labels] + 2 * torch.randn(count, 1, 8, 8, generator=random), labels


def train(optimizer, seed):
    torch.manual_seed(seed)                                    # initial weights
    random = torch.Generator().manual_seed(seed)               # data and its order
    model = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10))
    steps = optimizer(model)
    x, y = images(500, random)
    for _ in range(300):
        batch = torch.randint(500, (50,), generator=random)
        steps.zero_grad()
        cross_entropy(model(x[batch]), y[batch]).backward()
        steps.step()
    x, y = images(2000, random)
    with torch.no_grad():
        return cross_entropy(model(x), y)


print(cautious.compare(train, lr=2e-3, lambdas=[0.1, 0.3, 1, 3], seeds=5, unit="nats", target=0.02, out="compare-cnn"))
