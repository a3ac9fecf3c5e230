"""A stand-in for timm, only to run examples/python/timm_factory.py where it cannot be installed. It mirrors the interface of
timm 1.0.26 as far as that example goes. create_model() makes a small network whatever the name."""
from torch import nn


def create_model(model_name, num_classes=1000):
    return nn.Sequential(nn.Conv2d(3, 16, 3, stride=2), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(),
                         nn.Linear(256, num_classes))
