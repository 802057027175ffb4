"""`gpu_train.py WIDTH STEPS`: a small net trained on the GPU; prints how long the steps took. Narrow nets wait for the CPU, wide ones for the GPU."""

import json
import sys
import time

import torch

width, steps = int(sys.argv[1]), int(sys.argv[2])
torch.manual_seed(1)
layers = [part for _ in range(8) for part in (torch.nn.Linear(width, width), torch.nn.ReLU())]
net = torch.nn.Sequential(*layers).cuda()
rule, x = torch.optim.SGD(net.parameters(), 0.01), torch.randn(256, width, device="cuda")


def train(count):
    for _ in range(count):
        rule.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        rule.step()
        loss.item()


train(20)
begin = time.monotonic()
train(steps)
print(json.dumps({"steps_s": time.monotonic() - begin}))
