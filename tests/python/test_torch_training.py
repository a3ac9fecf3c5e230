"""Training as users do it: a small network on a synthetic problem with schedulers, stopped and continued, alone and under
every name."""
import copy
import io
import unittest

import torch

import cautious.torch as ct

MAKERS = {
    "adamw": lambda p: ct.AdamW(p, lr=0.02, weight_decay=0.1),
    "lion": lambda p: ct.Lion(p, lr=0.005, weight_decay=0.1),
    "lion-k": lambda p: ct.LionK(p, lr=0.03, k="l2", weight_decay=0.1),
    "sgdm": lambda p: ct.SGDM(p, lr=0.2, weight_decay=0.001),
    "muon": lambda p: ct.Muon(p, lr=0.02, rest_lr=0.02, weight_decay=0.1),
    "recipe": lambda p: ct.Optimizer(p, "adamc decay=cautious", 0.02),
}
STEPS = 120


class Problem:
    """Two layers that learn a product of sines; batches are a function of the step."""

    def __init__(self, maker):
        torch.manual_seed(0)
        self.net = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
        self.optimizer = maker(self.net.named_parameters())
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, STEPS)

    def loss(self, t):
        x = torch.rand(64, 2, generator=torch.Generator().manual_seed(t)) * 2 - 1
        return (self.net(x).squeeze(1) - torch.sin(3 * x[:, 0]) * torch.sin(3 * x[:, 1])).square().mean()

    def run(self, first, last):
        for t in range(first, last):
            self.optimizer.zero_grad()
            loss = self.loss(t)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
            self.optimizer.step()
            self.scheduler.step()
        return float(self.loss(10_000))

    def flat(self):
        return torch.cat([p.detach().flatten() for p in self.net.parameters()])


class Training(unittest.TestCase):
    def test_learns_and_continues_bitwise(self):
        for name, maker in MAKERS.items():
            with self.subTest(name):
                whole, first, second = Problem(maker), Problem(maker), Problem(maker)
                before = float(whole.loss(10_000))
                self.assertLess(whole.run(0, STEPS), 0.75 * before)
                first.run(0, STEPS // 2)
                buffer = io.BytesIO()
                torch.save([first.net.state_dict(), first.optimizer.state_dict(), first.scheduler.state_dict()], buffer)
                buffer.seek(0)
                for part, saved in zip((second.net, second.optimizer, second.scheduler), torch.load(buffer)):
                    part.load_state_dict(saved)
                second.run(STEPS // 2, STEPS)
                self.assertTrue(torch.equal(whole.flat(), second.flat()))
                self.assertEqual(second.optimizer.report().step, STEPS)
                self.assertGreater(second.optimizer.report().total.ratio, 0.1)

    def test_schedulers(self):
        """Each against torch's AdamW under the same scheduler; OneCycleLR moves betas too."""
        schedulers = {"one cycle": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, max_lr=0.05, total_steps=40),
                      "step": lambda o: torch.optim.lr_scheduler.StepLR(o, 10),
                      "warmup": lambda o: torch.optim.lr_scheduler.LinearLR(o),
                      "lambda": lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda t: 0.9 ** t),
                      "cyclic": lambda o: torch.optim.lr_scheduler.CyclicLR(o, 0.001, 0.02, cycle_momentum=False)}
        for name, scheduler in schedulers.items():
            with self.subTest(name):
                nets = []
                for maker in (torch.optim.AdamW, lambda p, **k: ct.AdamW(p, decay="decoupled", **k)):
                    torch.manual_seed(0)
                    net = torch.nn.Linear(5, 4).double()
                    optimizer = maker(net.parameters(), lr=0.01, weight_decay=0.1)
                    moved, betas = scheduler(optimizer), set()
                    for t in range(39):
                        net.zero_grad()
                        net(torch.randn(8, 5, generator=torch.Generator().manual_seed(t),
                                        dtype=torch.float64)).square().sum().backward()
                        optimizer.step()
                        moved.step()
                        betas.add(optimizer.param_groups[0]["betas"][0])
                    nets.append(torch.cat([p.detach().flatten() for p in net.parameters()]))
                self.assertLess(float((nets[0] - nets[1]).abs().max()), 1e-12)
                self.assertEqual(len(betas) > 1, name == "one cycle")

    def test_averaged_models_and_clones(self):
        problem = Problem(MAKERS["adamw"])
        average = torch.optim.swa_utils.AveragedModel(problem.net)
        problem.run(0, 5)
        average.update_parameters(problem.net)
        problem.net.load_state_dict(copy.deepcopy(problem.net.state_dict()))
        problem.run(5, 10)
        self.assertEqual(problem.optimizer.report().step, 10)


if __name__ == "__main__":
    unittest.main()
