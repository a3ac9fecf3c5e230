"""A small convolutional network on drawn shapes, trained with cautious weight decay in a few seconds. Needs torch alone.

    python3 examples/python/cnn.py

Run as it is, with torch 1.13 on a CPU. The data is made here: noisy 16 x 16 images of a bar, a column, a cross and a frame.
"""
import torch
from torch import nn

import cautious.torch


def shapes(count, seed):
    """Images [count, 1, 16, 16] and their classes."""
    source = torch.Generator().manual_seed(seed)
    images, classes = torch.zeros(count, 1, 16, 16), torch.randint(4, (count,), generator=source)
    for image, kind in zip(images, classes):
        (row, column), side = torch.randint(2, 8, (2,), generator=source).tolist(), 7
        window = image[0, row:row + side, column:column + side]
        if kind in (0, 2):
            window[side // 2] = 1
        if kind in (1, 2):
            window[:, side // 2] = 1
        if kind == 3:
            window[[0, -1]], window[:, [0, -1]] = 1, 1
    return images + 0.3 * torch.randn(images.shape, generator=source), classes


def main():
    torch.manual_seed(0)
    images, classes = shapes(2048, seed=1)
    unseen, answers = shapes(512, seed=2)
    model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(2), nn.Flatten(), nn.Linear(128, 4))
    optimizer = cautious.torch.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1, decay="cautious")
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 160)
    for epoch in range(5):
        for batch in torch.randperm(len(images)).split(64):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images[batch]), classes[batch])
            loss.backward()
            optimizer.step()
            schedule.step()
        with torch.no_grad():
            right = (model(unseen).argmax(1) == answers).float().mean()
        print(f"epoch {epoch + 1}  loss {loss:.3f}  accuracy {right:.3f}")


if __name__ == "__main__":
    main()
