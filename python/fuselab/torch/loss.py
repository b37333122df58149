"""Cross-entropy without its logarithms in memory.

PyTorch's nll_loss reads one number per row of a log_softmax, which is written for it in full. Where nothing else reads the
log_softmax, the number is picked inside the kernel that computes the row: a sum over the row of `where(class == target, x, 0)`,
exact because every other term is zero. Elsewhere nll_loss stays PyTorch's: it reads less than that sum would.
"""
import torch

aten = torch.ops.aten
MEAN, SUM = 1, 2  # ATen's numbers of the reductions

torch.library.define("fuselab::checked_index", "(Tensor self, SymInt size) -> Tensor")


@torch.library.impl("fuselab::checked_index", "CPU")
def _checked_index(index, size):
    if index.numel() and (int(index.min()) < 0 or int(index.max()) >= size):
        raise IndexError(f"an index is out of range: not in [0, {size})")
    return index.clone()


@torch.library.register_fake("fuselab::checked_index")
def _checked_index_type(index, size):
    return torch.empty_like(index)


def fuse_nll_loss(graph):
    """Takes every nll_loss apart whose log_softmax has no other reader."""
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target in (aten.nll_loss_forward.default, aten.nll_loss2d_forward.default):
            if _can_be_picked(*node.args):
                with graph.inserting_before(node):
                    parts = _forward(_Builder(graph, node), *node.args)
                for user in list(node.users):
                    user.replace_all_uses_with(parts[user.args[1]])
                    graph.erase_node(user)
                graph.erase_node(node)


def _can_be_picked(x, target, weight, reduction, ignore_index):
    made_by = getattr(x, "target", None)
    if made_by is not aten._log_softmax.default or len(x.users) != 1:
        return False
    val = x.meta["val"]
    return (x.args[1] in (1, 1 - val.dim()) and val.dim() > 1 and weight is None and target.meta["val"].dtype == torch.int64
            and isinstance(val.shape[1], int) and val.shape[1] > 0)


class _Builder:
    """Adds calls to a graph, with the types of their results, in the place of one node."""

    def __init__(self, graph, node):
        self.graph, self.meta = graph, {k: v for k, v in node.meta.items() if k not in ("val", "tensor_meta")}
        self.mode = node.args[0].meta["val"].fake_mode

    def __call__(self, target, *args, **kwargs):
        node = self.graph.call_function(target, args, kwargs)
        node.meta.update(self.meta)
        with self.mode:
            node.meta["val"] = target(*(a.meta["val"] if isinstance(a, torch.fx.Node) else a for a in args), **kwargs)
        return node


def _forward(call, x, target, weight, reduction, ignore_index):
    val = x.meta["val"]
    wide = torch.float32 if val.dtype in (torch.float16, torch.bfloat16) else val.dtype
    if wide != val.dtype:  # the logarithms are no result here: nothing rounds them to f16 or bf16
        x = call(aten._log_softmax.default, call(aten._to_copy.default, x.args[0], dtype=wide), x.args[1], False)
    valid = call(aten.ne.Scalar, target, ignore_index)
    index = call(torch.ops.fuselab.checked_index.default, call(aten.where.ScalarOther, valid, target, 0), val.shape[1])
    hit = call(aten.eq.Tensor, _classes(call, val), call(aten.unsqueeze.default, index, 1))
    picked = call(aten.sum.dim_IntList, call(aten.where.ScalarOther, hit, x, 0.0), [1])
    loss = call(aten.where.ScalarOther, valid, call(aten.neg.default, picked), 0.0)
    if reduction not in (MEAN, SUM):
        total = call(aten.full.default, [], 0.0, dtype=val.dtype, device=val.device)
    else:
        count = call(aten.sum.default, valid)
        total = call(aten._to_copy.default, count, dtype=val.dtype)
        loss = call(aten.sum.default, loss)
        if reduction == MEAN:
            loss = call(aten.div.Tensor, loss, count)
    if wide != val.dtype:
        loss = call(aten._to_copy.default, loss, dtype=val.dtype)
    return loss, total


def _classes(call, x):
    """0, 1, ... along dimension 1."""
    classes = call(torch.ops.prims.iota.default, x.shape[1], start=0, step=1, dtype=torch.int64, device=x.device,
                   requires_grad=False)
    for _ in range(x.dim() - 2):
        classes = call(aten.unsqueeze.default, classes, -1)
    return classes


def nll_loss_backward(grad, x, target, weight, reduction, ignore_index, total_weight):
    """The decomposition of the gradient: minus the gradient of the row's loss where the class is the target, else 0."""
    if weight is not None or x.dim() < 2 or target.dtype != torch.int64:
        return NotImplemented
    if reduction == MEAN:
        grad = aten.div.Tensor(grad, total_weight)
    grad = aten.neg.default(grad)
    if reduction not in (MEAN, SUM):
        grad = aten.unsqueeze.default(grad, 1)
    index = aten.where.ScalarOther(aten.ne.Scalar(target, ignore_index), target, -1)
    hit = aten.eq.Tensor(_classes(lambda op, *args, **kwargs: op(*args, **kwargs), x), aten.unsqueeze.default(index, 1))
    return aten.where.ScalarOther(hit, grad, 0.0)
