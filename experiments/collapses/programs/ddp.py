"""PyTorch: `ddp.py STEPS`: a small net trained by two processes of one thread each (DistributedDataParallel over Gloo)."""

import os
import sys
import tempfile

import torch
import torch.distributed
import torch.multiprocessing


def train(rank, steps, rendezvous):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=2)
    layers = [part for _ in range(8) for part in (torch.nn.Linear(256, 256), torch.nn.ReLU())]
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
    rule, x = torch.optim.SGD(net.parameters(), 0.01), torch.randn(64, 256)
    for _ in range(steps):
        rule.zero_grad()
        net(x).square().mean().backward()
        rule.step()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(train, (int(sys.argv[1]), os.path.join(folder, "meet")), nprocs=2)
