"""The checks of `fairseq-milk check`: a healthy model passes, and each fault is found by its check."""

from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Optional, Set, Tuple, Type

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary, LanguagePairDataset
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_milk.attention import Bernoulli, SimultaneousAttention
from fairseq_milk.attention.energy import MonotonicEnergy
from fairseq_milk.checks.finding import FAIL, OK, SKIP, WARN, Finding
from fairseq_milk.checks.loading import without_plugin
from fairseq_milk.checks.subject import LONGEST, Subject, spread, subject
from fairseq_milk.checks.table import CHECKS, run_checks
from fairseq_milk.functional import expected_alignment, expected_alignment_parallel
from fairseq_milk.generation import DecodingOptions, translate
from fairseq_milk.models.decoder import RNMTDecoder
from fairseq_milk.models.encoder import EncoderOut, RNMTEncoder
from tests.support import tiny_models as tiny
from tests.support.tiny_models import Kind

EOS = Dictionary().eos()
Sentences = List[List[int]]


def dataset(sources: Sentences, targets: Sentences, words: Dictionary, **changes: Any) -> LanguagePairDataset:
    """In memory.  Sentences end in EOS."""
    sides: List[Any] = []
    for sentences, of in ((sources, words), (targets, words)):
        sides += [[torch.tensor(s) for s in sentences], np.array(list(map(len, sentences))), of]
    return LanguagePairDataset(*sides, **{"left_pad_source": False, **changes})


def healthy(attention: str, trained: bool = True, longest: int = 9, **changes: Any) -> Subject:
    """A model with data that it generated itself, whose head both reads and writes."""
    torch.manual_seed(3)
    model = tiny.model(attention=attention, **{"noise": 2.0, **changes}).eval()
    with torch.no_grad():
        model.decoder.output.weight.mul_(2.0)  # larger weights: more confident predictions
    pairs = tiny.pairs(12, shortest=4, longest=longest)
    options = DecodingOptions(max_len_a=0, max_len_b=8, unk_penalty=float("inf"))
    hypotheses = translate(model, tiny.batch(pairs)["net_input"]["src_tokens"], options)
    sources, targets = [[*pair.source, EOS] for pair in pairs], [hypothesis.tokens for hypothesis in hypotheses]
    return of(model, sources, targets, trained)


def of(model: Any, sources: Sentences, targets: Sentences, trained: bool = True, **changes: Any) -> Subject:
    task = SimpleNamespace(**vars(tiny.task()), max_positions=lambda: (1024, 1024))
    pairs = dataset(sources, targets, task.source_dictionary, **changes)
    return subject(model, task, pairs, data="nowhere", trained=trained)


def sides(subject_: Subject) -> Tuple[Sentences, Sentences]:
    data = subject_.dataset
    return [s.tolist() for s in data.src], [t.tolist() for t in data.tgt]


def findings(subject_: Subject) -> Dict[str, Finding]:
    return dict(run_checks(subject_))


def failed(found: Dict[str, Finding]) -> Set[str]:
    return {name for name, finding in found.items() if finding.status == FAIL}


# ---- healthy -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attention", tiny.FIVE)
def test_a_healthy_model_passes(attention: str) -> None:
    found = findings(healthy(attention))
    assert list(found) == list(CHECKS), "a finding has the name of its check"
    assert failed(found) == set(), found
    given_schedule = {"gradient", "mass", "agreement", "policy"} if attention not in tiny.LEARNED else set()
    assert {name for name, finding in found.items() if finding.status == SKIP} == given_schedule


@pytest.mark.parametrize("kind", tiny.BOTH_FAMILIES, ids=str)
def test_a_training_about_to_begin_passes(kind: Kind) -> None:
    """With initial weights and a head that waits, no check reports a collapse."""
    fresh = kind.build(spread=0, energy_bias=-6.0, noise=4.0, dropout=0.2)
    sources, targets = sides(healthy("waitk"))
    found = findings(of(fresh, sources, targets, trained=False))
    assert failed(found) == set(), found
    assert found["likelihood"].status == SKIP and found["policy"].status == SKIP
    assert found["direction"].status == SKIP and "not checked" in found["direction"].sentence, "one dictionary for both"


@pytest.mark.parametrize("schedule_heads", [1, 2])
@pytest.mark.parametrize("attention", tiny.FIVE)
def test_a_transformer_is_sound(attention: str, schedule_heads: int) -> None:
    torch.manual_seed(3)
    model = tiny.transformer(attention=attention, schedule_heads=schedule_heads, noise=2.0)
    pairs = tiny.pairs(6, shortest=2, longest=7)
    found = findings(of(model, [[*p.source, EOS] for p in pairs], [[*p.target, EOS] for p in pairs]))
    assert failed(found) <= {"likelihood", "direction", "policy"}, found  # random weights know nothing
    if attention in tiny.LEARNED:
        assert {found[name].status for name in ("gradient", "mass", "agreement", "causality")} <= {OK, WARN}


@pytest.mark.slow
@settings(max_examples=6)
@given(seed=st.integers(0, 10**6), attention=st.sampled_from(tiny.LEARNED), layers=st.integers(1, 3))
def test_whatever_the_weights_the_mechanism_is_sound(seed: int, attention: str, layers: int) -> None:
    torch.manual_seed(seed)
    model = tiny.model(attention=attention, noise=4.0, encoder_layers=layers, decoder_layers=layers)
    pairs = tiny.pairs(6, shortest=2, longest=7, seed=seed)
    sources, targets = [[*p.source, EOS] for p in pairs], [[*p.target, EOS] for p in pairs]
    found = findings(of(model, sources, targets, left_pad_source=seed % 2 == 0))
    assert failed(found) <= {"likelihood", "direction", "policy"}, found  # random weights predict nothing


def test_an_offline_model_is_not_blamed() -> None:
    found = findings(healthy("soft")._replace(model=tiny.model(attention="soft", encoder_bidirectional=True).eval()))
    assert found["causality"].status == SKIP and found["streaming"].status == SKIP
    assert failed(found) <= {"likelihood", "direction"}


# ---- a broken model ----------------------------------------------------------------------------------------------


class DetachedHead(MonotonicEnergy):
    def forward(self, *args: Any) -> Tensor:
        return super().forward(*args).detach()


class DetachedDelays(SimultaneousAttention):
    def expected(self, *args: Any, **kwargs: Any) -> Any:
        out, state = super().expected(*args, **kwargs)
        return out._replace(alpha=out.alpha.detach()), state


class PeekingHead(MonotonicEnergy):
    def forward(self, *args: Any) -> Tensor:
        e = super().forward(*args)
        return e * (100 * e.sum(1, keepdim=True)).sin().sign()  # any other token may change every decision


class PeekingEncoder(RNMTEncoder):
    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        h = super().encode(x, lengths)
        return h + h.mean(1, keepdim=True)


class PeekingDecoder(RNMTDecoder):
    """A decoder whose inputs depend on the last source token."""

    def _schedule(self, y: Tensor, encoder_out: EncoderOut, hard: bool) -> Any:
        last = encoder_out.h[torch.arange(len(y)), (encoder_out.lengths - 2).clamp(min=0)]
        return super()._schedule(y + last.unsqueeze(1)[..., : y.size(-1)], encoder_out, hard)


class CountingDecoder(RNMTDecoder):
    """A decoder whose inputs depend on the length of the source."""

    def _schedule(self, y: Tensor, encoder_out: EncoderOut, hard: bool) -> Any:
        return super()._schedule(y + encoder_out.lengths.view(-1, 1, 1).to(y.dtype), encoder_out, hard)


class HurryingStop(Bernoulli):
    """Everything after the first source token, but EOS at the end of the source."""

    def expected(self, e: Tensor, memory: Any, state: Any, hard: bool) -> Tensor:
        alpha = torch.zeros_like(state.alpha)
        alpha[:, 0] = 1.0
        ends = self.target_lengths == state.i + 1
        alpha[ends] = torch.nn.functional.one_hot(memory.lengths[ends] - 1, alpha.size(1)).to(alpha.dtype)
        return alpha


class ForgetfulEncoder(RNMTEncoder):
    def step(self, tokens: Tensor, states: Any) -> Any:
        return super().step(tokens, None)


class LeftPaddedEncoder(RNMTEncoder):
    def forward(self, src_tokens: Tensor, src_lengths: Optional[Tensor] = None, **unused: Any) -> EncoderOut:
        lengths = src_tokens.ne(self.padding_idx).sum(1)
        return EncoderOut(self.encode(self.embedding(src_tokens), lengths), lengths)


def turned(part: str, kind: Type[torch.nn.Module]) -> Callable[[Subject], Subject]:
    """The model with the class of one of its modules replaced."""

    def turn(subject_: Subject) -> Subject:
        subject_.model.get_submodule(part).__class__ = kind
        return subject_

    return turn


def with_stop(**attributes: Any) -> Callable[[Subject], Subject]:
    def change(subject_: Subject) -> Subject:
        vars(subject_.attention.stop).update(attributes)
        return subject_

    return change


def frozen(subject_: Subject) -> Subject:
    subject_.heads[0].requires_grad_(False)
    return subject_


def hurrying(subject_: Subject) -> Subject:
    subject_ = turned("decoder.attention.stop", HurryingStop)(subject_)
    return with_stop(target_lengths=subject_.target_lengths)(subject_)


def leaky_in_places(*args: Any) -> Tensor:
    """One sentence of twelve loses a tenth of its probability: the mean hardly shows it."""
    alpha = expected_alignment(*args)
    return torch.cat((0.88 * alpha[:1], alpha[1:]))


def leaky_alignment(*args: Any) -> Tensor:
    return 0.97 * expected_alignment(*args)


BROKEN_MODELS = [
    (turned("decoder.attention.head", DetachedHead), "gradient", set(), "likelihood gives"),
    (turned("decoder.attention", DetachedDelays), "gradient", set(), "latency gives"),
    (frozen, "gradient", set(), "w_s 0"),
    (with_stop(alignment=leaky_alignment), "mass", {"agreement"}, "of the stop probability"),
    (with_stop(alignment=leaky_in_places), "mass", {"agreement"}, "of the worst row"),
    (
        with_stop(exact=False, alignment=expected_alignment_parallel, final_noise=6.0),
        "mass",
        {"agreement"},
        "wrong delays",
    ),
    (
        with_stop(exact=False, alignment=expected_alignment_parallel, final_noise=2.0),
        "mass",
        {"agreement"},
        "wrong delays",
    ),
    (with_stop(threshold=0.55), "agreement", set(), "not the same schedule"),
    (turned("encoder", PeekingEncoder), "causality", {"streaming"}, "earlier states"),
    (turned("decoder.attention.head", PeekingHead), "causality", {"streaming"}, "energies"),
    (turned("decoder", PeekingDecoder), "causality", {"streaming"}, "outputs"),
    (turned("decoder", CountingDecoder), "causality", {"streaming", "policy"}, "outputs"),
    (turned("encoder", ForgetfulEncoder), "streaming", set(), "differ between a batch and a stream"),
    (turned("encoder", LeftPaddedEncoder), "padding", set(), "side of the padding"),
]


@pytest.mark.parametrize("broken, check, besides, words", BROKEN_MODELS)
def test_a_broken_model_is_found(
    broken: Callable[[Subject], Subject], check: str, besides: Set[str], words: str
) -> None:
    """The intended check fails, and others only where the fault implies it.

    The likelihood may fail as well: the data were generated before the model was broken.
    """
    found = findings(broken(healthy("milk", longest=20)))
    assert found[check].status == FAIL and words in found[check].sentence, found
    assert failed(found) <= {check, *besides, "likelihood", "direction"}, found


@pytest.mark.parametrize("bias, words", [(-20.0, "reads the whole source"), (20.0, "after one source token")])
@pytest.mark.parametrize("attention", tiny.LEARNED)
def test_a_collapsed_head_is_found(attention: str, bias: float, words: str) -> None:
    """The gradient check may fail too: a probability of exactly 1 has no gradient."""
    found = findings(healthy(attention, energy_bias=bias))
    assert "policy" in failed(found) <= {"policy", "gradient"} and words in found["policy"].sentence, found
    share = found["policy"].figures["full_reads" if bias < 0 else "minimal_reads"]
    assert share == 1.0


@pytest.mark.parametrize("share, status", [(0.6, OK), (0.87, FAIL)])
def test_a_schedule_of_ones_is_found(share: float, status: str) -> None:
    """All quartiles of its delays are 1, although some words wait."""
    model = healthy("milk", longest=20)
    alpha = torch.zeros_like(model.schedule(hard=True)["alpha"])
    count = torch.arange(alpha.size(0) * alpha.size(1)).view(alpha.shape[:2])
    hurried = (count * 37) % 100 < 100 * share
    alpha[..., 0], alpha[..., 2] = hurried.float(), (~hurried).float()
    schedule = {"alpha": alpha, "src_lengths": model.sample["net_input"]["src_lengths"]}

    class Given(Subject):
        def schedule(self, hard: bool) -> Dict[str, torch.Tensor]:
            return schedule

    found = CHECKS["policy"](Given(*model))
    assert found.status == status and found.figures["minimal_reads"] == pytest.approx(share, abs=0.1), found


def test_a_head_that_waits_for_the_end_of_the_sentence_alone_is_found() -> None:
    """Everything but EOS is written after one source token; the mean delay looks healthy."""
    found = CHECKS["policy"](hurrying(healthy("milk", longest=20)))
    assert found.status == FAIL and "after one source token" in found.sentence
    assert found.figures["mean_delay"] > 1.5 and found.figures["minimal_reads"] == 1.0


@pytest.mark.parametrize("kind, part", [(PeekingDecoder, "decoder"), (PeekingHead, "decoder.attention.head")])
def test_looking_ahead_is_found_while_the_head_waits(kind: Any, part: str) -> None:
    """Before training the schedule itself writes nothing early."""
    sources, targets = sides(healthy("waitk"))
    fresh = of(tiny.model(spread=0, attention="milk", energy_bias=-1.0), sources, targets, trained=False)
    assert CHECKS["causality"](fresh).status == OK
    found = CHECKS["causality"](turned(part, kind)(fresh))
    assert found.status == FAIL and found.figures["outputs_compared"] > 0, found


@pytest.mark.parametrize("attention", tiny.STREAMING)
def test_looking_ahead_is_found_in_one_word(attention: str) -> None:
    words = [[5, EOS], [6, EOS], [7, EOS]]
    sound = of(tiny.model(attention=attention, wait_k=1), words, words)
    assert CHECKS["causality"](sound).status == OK
    assert CHECKS["causality"](turned("encoder", PeekingEncoder)(sound)).status == FAIL


def test_what_cannot_be_compared_is_not_ok() -> None:
    """A schedule that writes nothing early gives a warning, and an empty source is skipped."""
    sources, targets = sides(healthy("waitk"))
    waiting = CHECKS["causality"](of(tiny.model(attention="waitk", wait_k=30), sources, targets))
    empty = CHECKS["causality"](of(tiny.model(attention="milk"), [[EOS], [EOS]], targets[:2]))
    assert waiting.status == WARN and "could not be compared" in waiting.sentence
    assert empty.status == SKIP and empty.figures == {}


@pytest.mark.parametrize("bias", [-20.0, -30.0])
def test_a_gradient_that_underflows_is_found(bias: float) -> None:
    """A gradient below Adam's epsilon counts as none: the head would not move."""
    fresh = tiny.model(spread=0, attention="milk", energy_bias=bias, noise=0.0)
    found = CHECKS["gradient"](of(fresh, *sides(healthy("waitk")), trained=False))
    assert found.status == FAIL and "no usable gradient" in found.sentence and "epsilon" in found.sentence
    assert all(norm > 0 for norm in found.figures["likelihood"].values())


def test_a_rare_misplacement_is_warned_of() -> None:
    """A small loss of mass is a warning, neither a failure nor a success."""

    def nearly(*args: Any) -> Tensor:
        alpha = expected_alignment(*args)
        return torch.cat(((1 - 2e-3) * alpha[:1], alpha[1:]))

    found = CHECKS["mass"](with_stop(alignment=nearly)(healthy("milk", longest=20)))
    assert found.status == WARN and "of the worst row" in found.sentence and found.figures["misplaced"] < 0.01


def test_lost_mass_is_counted_where_it_was_asked_for() -> None:
    found = findings(healthy("milk", unpreserved_mass=True, energy_bias=-3.0))
    assert found["mass"].status == WARN and found["mass"].figures["lost"] > 0.1
    assert "--unpreserved-mass" in found["mass"].sentence
    assert failed(found) <= {"policy"}, "what runs off the end reads everything, in both schedules"


def test_without_a_latency_term_nothing_makes_the_head_hurry() -> None:
    found = CHECKS["gradient"](healthy("milk", trained=False)._replace(latency_weight=0.0))
    assert found.status == WARN and "--latency-weight 0" in found.sentence


def test_checking_leaves_the_model_as_it_was() -> None:
    checked = healthy("milk", dropout=0.2)
    before = {name: p.clone() for name, p in checked.model.state_dict().items()}
    random = torch.get_rng_state()
    findings(checked)
    assert torch.equal(random, torch.get_rng_state())
    assert not checked.model.training and not checked.heads[0]._forward_hooks
    assert all(p.grad is None for p in checked.model.parameters())
    assert all(torch.equal(before[name], p) for name, p in checked.model.state_dict().items())


# ---- broken data -------------------------------------------------------------------------------------------------


def renamed(symbols: Callable[[int], str]) -> Dictionary:
    """The dictionary of tiny.task with other words."""
    result = Dictionary()
    for word in range(len(tiny.dictionary(12)) - result.nspecial):
        result.add_symbol(symbols(word))
    return result


def with_dictionaries(subject_: Subject, source: Dictionary, target: Dictionary) -> Subject:
    task = SimpleNamespace(**{**vars(subject_.task), "source_dictionary": source, "target_dictionary": target})
    return subject_._replace(task=task)


def test_another_dictionary_of_the_same_size_is_found() -> None:
    """A dictionary in another order is found by the likelihood."""
    known = healthy("milk")
    sources, targets = sides(known)
    words = len(known.task.target_dictionary) - 4
    shuffled = [[t if t < 4 else (t - 4 + 5) % words + 4 for t in target] for target in targets]
    found = findings(of(known.model, sources, shuffled))
    assert "likelihood" in failed(found) <= {"likelihood", "direction"}
    assert "not the dictionaries" in found["likelihood"].sentence


def test_another_source_dictionary_of_the_same_size_is_found() -> None:
    """The decoder alone is a better language model than word frequencies; the source side is compared separately."""
    known = healthy("soft")
    sources, targets = sides(known)
    words = len(known.task.source_dictionary) - 4
    shuffled = [[t if t < 4 else (t - 4 + 5) % words + 4 for t in source] for source in sources]
    found = findings(of(known.model, shuffled, targets))
    assert failed(found) == {"likelihood"}, found
    assert "other sentences" in found["likelihood"].sentence
    figures = found["likelihood"].figures
    assert figures["nll"] < figures["frequencies"], "not found by the likelihood alone"


def test_equal_sources_say_nothing_about_the_dictionary() -> None:
    known = healthy("soft")
    sources, targets = sides(known)
    found = CHECKS["likelihood"](of(known.model, sources[:1] * 3, targets[:1] * 3))
    assert found.status != FAIL and found.figures["other_sources"] is None


def test_another_dictionary_of_another_size_is_found() -> None:
    larger = tiny.dictionary(14)
    found = findings(with_dictionaries(healthy("milk"), larger, larger))
    assert (
        found["dictionary"].status == FAIL and "16 source words and the dictionary 18" in found["dictionary"].sentence
    )


def test_data_beyond_the_dictionary_are_found() -> None:
    """A check that cannot be made is reported as such."""
    known = healthy("milk")
    sources, targets = sides(known)
    found = findings(of(known.model, [[99, *s] for s in sources], targets))
    assert "word number 99" in found["dictionary"].sentence and found["dictionary"].status == FAIL
    assert "could not be made: IndexError" in found["causality"].sentence


def test_swapped_sides_are_found_with_two_dictionaries() -> None:
    """Binarised the wrong way round, all words are unknown; if only one side is wrong it is not a swap."""
    known = healthy("milk")
    sources, targets = sides(known)
    unknown = [[Dictionary().unk()] * (len(s) - 1) + [EOS] for s in sources]
    both, one = (CHECKS["direction"](of(known.model, unknown, side)) for side in (unknown, targets))
    assert both.status == one.status == FAIL
    assert "swapped" in both.sentence and "swapped" not in one.sentence


def test_swapped_sides_are_found_with_one_dictionary() -> None:
    known = healthy("milk")
    sources, targets = sides(known)
    found = findings(of(known.model, targets, sources))
    assert "direction" in failed(found) <= {"direction", "likelihood", "policy"}, "a schedule for other sentences"
    assert "swapped" in found["direction"].sentence


def test_a_lost_subword_marker_is_found(tmp_path: Any) -> None:
    plain, bpe = renamed(lambda n: f"w{n}"), renamed(lambda n: f"w{n}@@" if n % 2 else f"w{n}")
    pieces = renamed(lambda n: f"\u2581w{n}")
    known = healthy("milk")
    statuses = {
        (source, target): CHECKS["subwords"](with_dictionaries(known, s, t))
        for source, s in (("plain", plain), ("bpe", bpe), ("pieces", pieces))
        for target, t in (("plain", plain), ("bpe", bpe), ("pieces", pieces))
    }
    assert {key for key, finding in statuses.items() if finding.status == OK} == {
        (k, k) for k in ("plain", "bpe", "pieces")
    }
    assert statuses["bpe", "pieces"].status == WARN
    assert "the target side has none" in statuses["bpe", "plain"].sentence
    assert "the source side has none" in statuses["plain", "pieces"].sentence
    (tmp_path / "codes.txt").write_text("#version: 0.2\n")
    found = CHECKS["subwords"](with_dictionaries(known, plain, plain)._replace(data=str(tmp_path)))
    assert found.status == FAIL and "BPE codes" in found.sentence


def test_long_sentences_are_counted() -> None:
    known = healthy("milk")
    sources, targets = sides(known)
    for left_out, status in ((0, OK), (1, WARN), (12, FAIL)):
        pairs = of(known.model, [[*s[:4], EOS] for s in sources], targets)
        pairs.dataset.src_sizes[:left_out] = 7
        found = CHECKS["lengths"](pairs._replace(task=SimpleNamespace(max_positions=lambda: (6, 1024))))
        assert (found.status, found.figures["left_out"]) == (status, left_out / 12)


def test_empty_sides_are_counted() -> None:
    known = healthy("milk")
    sources, targets = sides(known)
    found = CHECKS["lengths"](of(known.model, [[EOS], *sources[1:]], targets))
    assert found.status == WARN and "1 of 12" in found.sentence


def test_targets_padded_on_the_left_are_refused() -> None:
    known = healthy("milk")
    found = CHECKS["padding"](of(known.model, *sides(known), left_pad_target=True))
    assert found.status == FAIL and "--left-pad-target" in found.sentence


def test_the_sample_is_spread_and_short() -> None:
    assert spread(10, 4) == [0, 2, 5, 7] and spread(3, 9) == [0, 1, 2]
    known = healthy("waitk")
    sources, targets = sides(known)
    long = [5] * LONGEST + [EOS]
    mixed = of(known.model, [long, *sources], [targets[0], *targets])
    assert len(mixed.lines) == 13 and len(mixed.tried) == 12
    assert len(of(known.model, [long, long], targets[:2]).tried) == 1, "better a long one than none"


def test_the_plugin_is_not_imported_twice() -> None:
    arguments = [
        "data",
        "--user-dir",
        "/x/fairseq_milk/",
        "--arch",
        "a",
        "--user-dir=fairseq_milk",
        "--user-dir",
        "mine",
    ]
    assert without_plugin(arguments) == ["data", "--arch", "a", "--user-dir", "mine"]
