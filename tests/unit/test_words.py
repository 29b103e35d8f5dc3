"""Streaming of words: how a word is split, when a word is complete, and output that only grows."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, List, Sequence, Tuple

import pytest
from fairseq.data import Dictionary

from fairseq_milk.console.errors import UserError
from fairseq_milk.generation import StreamingSession, load_words
from fairseq_milk.generation.loading import build_bpe, find_codes
from fairseq_milk.live import Piece, Session
from fairseq_milk.text.encoders import BoundedCache, Moses, SentencePiece
from fairseq_milk.text.words import SourceWords, TargetText
from tests.support.piece_models import TEXT, pieces
from tests.support.stand_in_translators import stand_in
from tests.support.tiny_models import model as tiny_model

MOSES = Moses("en", "en")


def dictionary(*symbols: str) -> Dictionary:
    result = Dictionary()
    for symbol in symbols:
        result.add_symbol(symbol)
    return result


def grow(target: TargetText, *tokens: str) -> List[str]:
    """What each token and the end of the sentence add to the text."""
    return [target.add(target.dictionary.index(token)) for token in tokens] + [target.finish()]


class Suffix:
    """A stand-in for BPE: the last letter is a subword."""

    @staticmethod
    def encode(word: str) -> str:
        return " ".join(f"{w[:-1]}@@ {w[-1]}" if len(w) > 1 else w for w in word.split())


# ---- in ----------------------------------------------------------------------------------------------------------


def test_a_word_becomes_subwords() -> None:
    source = SourceWords(dictionary("hau@@", "s", "."), bpe=Suffix, tokenizer=MOSES)
    index = source.dictionary.index
    assert source.tokens("haus.") == [index("hau@@"), index("s"), index(".")]
    assert source.tokens("maus") == [source.dictionary.unk(), index("s")]


def test_text_cannot_give_commands() -> None:
    source = SourceWords(dictionary("a"))
    for command in ("<s>", "</s>", "<pad>", "<unk>"):
        assert source.tokens(command) == [source.dictionary.unk()]
    assert source.tokens("") == []


# ---- out ---------------------------------------------------------------------------------------------------------


def test_a_word_comes_out_when_it_is_whole() -> None:
    target = TargetText(dictionary("ho@@", "use@@", "s", "the"))
    assert grow(target, "the", "ho@@", "use@@", "s", "the") == ["the", "", "", " houses", " the", ""]
    target = target.begin()
    assert grow(target, "the", "ho@@", "use@@") == ["the", "", "", " house"]  # cut short, as --remove-bpe has it


def test_sentencepiece_says_where_words_begin() -> None:
    target = TargetText(dictionary("▁the", "▁hou", "ses", "▁"))
    assert grow(target, "▁the", "▁hou", "ses", "▁the") == ["", "the", "", " houses", " the"]
    target = target.begin()
    assert "".join(grow(target, "▁", "ses", "▁", "▁the")) == "ses the"


def test_without_marks_every_token_is_a_word() -> None:
    assert grow(TargetText(dictionary("the", "house")), "the", "house") == ["the", " house", ""]
    assert grow(TargetText(dictionary("the")), "nonsense") == ["<unk>", ""]


@pytest.mark.parametrize(
    "text",
    [
        'He said: "Hello, world!" and left.',
        "A well-known state-of-the-art system isn't John's (perhaps) 3.5% & more <tag>.",
        "The \"quoted 'inner' words\" cost $5.00, don't they?",
        "Hello ... world! a/b [x] {y} | pipe - dash",
    ],
)
def test_detokenised_text_only_grows(text: str) -> None:
    tokens = MOSES.encode(text).split()
    pieces = grow(TargetText(dictionary(*tokens), MOSES), *tokens)
    assert "".join(pieces) == MOSES.decode(" ".join(tokens))
    assert sum(piece != "" for piece in pieces) > len(tokens) // 2


def test_a_hyphen_waits_for_what_it_joins() -> None:
    target = TargetText(dictionary("well", "@-@", "known", "."), MOSES)
    assert grow(target, "well", "@-@", "known", ".") == ["well", "", "-known", ".", ""]
    target = target.begin()
    assert "".join(grow(target, "well", "@-@")).startswith("well")


def test_subwords_are_forgotten_when_there_are_too_many(tmp_path: Path) -> None:
    """The cache of subword-nmt, which keeps every word, is bounded: a stream may never end."""
    (tmp_path / "codes").write_text("#version: 0.2\na b</w>\n")
    bpe = build_bpe(str(tmp_path / "codes"))
    source = SourceWords(dictionary("ab", "x@@"), bpe)
    for number in range(3 * BoundedCache.room // 2):
        source.tokens(f"x{number}")
    assert len(bpe.bpe.cache) <= BoundedCache.room
    assert bpe.encode("ab xab") == "ab x@@ ab"


def test_subwords_can_be_made_by_several_threads(tmp_path: Path) -> None:
    """subword-nmt looks up a word in two steps; no other thread may empty the cache between them."""
    (tmp_path / "codes").write_text("#version: 0.2\na b</w>\n")
    bpe = build_bpe(str(tmp_path / "codes"))

    class Interrupted(BoundedCache):
        room = 1

        def __contains__(self, word: object) -> bool:
            known = super().__contains__(word)
            if known and threading.current_thread() is threading.main_thread():
                other.start()
                other.join(0.2)
            return known

    bpe.bpe.cache = Interrupted()
    other = threading.Thread(target=bpe.encode, args=("another word",))
    bpe.encode("xab")
    assert bpe.encode("xab") == "x@@ ab"
    other.join(20)


def test_a_sentencepiece_model_is_found_or_asked_for(tmp_path: Path) -> None:
    task = SimpleNamespace(source_dictionary=dictionary("▁the", "▁hou", "ses"), target_dictionary=dictionary("a"))
    with pytest.raises(
        UserError, match="sentencepiece .* no file \\*.model in .*: name the file with --sentencepiece-model"
    ):
        load_words(task, str(tmp_path))


# ---- a session of words ------------------------------------------------------------------------------------------


def words_and_model() -> Tuple[Any, SourceWords, TargetText]:
    model = tiny_model(12, attention="waitk", wait_k=2).eval()
    return model, SourceWords(model.encoder.dictionary), TargetText(model.decoder.dictionary)


def text_of(pieces: Sequence[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def test_a_session_writes_while_it_reads() -> None:
    model, source, target = words_and_model()
    session = Session(StreamingSession(model), source, target)
    pieces = [text_of(session.push(word)) for word in ("w1", "w2", "unheard", "w3")]
    assert pieces[0] == "" and all(len(piece.split()) == 1 for piece in pieces[1:])
    text = "".join(pieces) + text_of(session.end())
    assert session.done and text.split() == [model.decoder.dictionary[w.token] for w in session.written[:-1]]
    assert [w.delay for w in session.written[:4]] == [2, 3, 4, 5]
    assert session.text == text and session.translation().text == text


def test_a_session_that_has_ended_takes_nothing_more() -> None:
    session = stand_in("waitk").session()
    session.push("er")
    session.end()
    before = session.translation()
    for again in (session.end, lambda: session.push("hat")):
        with pytest.raises(ValueError, match="has ended: begin a new session"):
            again()
    assert session.translation() == before and session.words == 1


def test_sessions_at_once_share_no_text() -> None:
    """Two sessions have separate target texts, in whatever order they are fed."""
    model, source, target = words_and_model()
    alone = Session(StreamingSession(model), source, target)
    want = text_of(alone.push("w1 w2 w3")) + text_of(alone.end())
    first, second = (Session(StreamingSession(model), source, target) for _ in range(2))
    texts = ["", ""]
    for word in ("w1", "w2", "w3", None):
        for index, session in enumerate((first, second)):
            texts[index] += text_of(session.end() if word is None else session.push(word))
    assert texts == [want, want]


# ---- codes -------------------------------------------------------------------------------------------------------


def test_the_codes_are_found_or_asked_for(tmp_path: Any) -> None:
    task = SimpleNamespace(source_dictionary=dictionary("a@@", "b"), target_dictionary=dictionary("c"))
    with pytest.raises(UserError, match="no BPE codes in .* name the file with --bpe-codes"):
        load_words(task, str(tmp_path))
    (tmp_path / "bpe.codes").write_text("#version: 0.2\na b</w>\n")
    source, _ = load_words(task, str(tmp_path))
    assert find_codes(str(tmp_path)).endswith("bpe.codes") and source.bpe and source.bpe.encode("cab") == "c@@ ab"
    (tmp_path / "codes.old").write_text("")
    with pytest.raises(UserError, match="2 files"):
        load_words(task, str(tmp_path))
    with pytest.raises(UserError, match="there is no file of BPE codes /nowhere"):
        load_words(task, str(tmp_path), "/nowhere")
    task.source_dictionary = dictionary("a", "b")
    assert load_words(task, str(tmp_path))[0].bpe is None


# ---- sentencepiece -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_a_word_is_segmented_by_itself_as_in_its_sentence(kind: str, tmp_path: Path) -> None:
    (tmp_path / "de.model").write_bytes(pieces(model_type=kind))
    whole = SentencePiece((tmp_path / "de.model").read_bytes(), "m")
    symbols = sorted({piece for line in TEXT for piece in whole.encode(line).split()})
    task = SimpleNamespace(source_dictionary=dictionary(*symbols), target_dictionary=dictionary("a"))
    source, _ = load_words(task, str(tmp_path))
    for line in TEXT[:3]:
        tokens = [token for word in line.split() for token in source.tokens(word)]
        assert [source.dictionary[token] for token in tokens] == whole.encode(line).split()


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"split_by_whitespace": False}, "has pieces that cross words"),
        ({"add_dummy_prefix": False}, "does not begin a word with"),
        ({"treat_whitespace_as_suffix": True}, "pieces that cross words|does not begin a word with"),
    ],
)
def test_pieces_that_cross_words_are_refused(options: Any, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        SentencePiece(pieces(**options), "m")
    with pytest.raises(UserError, match="m is not a sentencepiece model"):
        SentencePiece(b"nonsense", "m")
