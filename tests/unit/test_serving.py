"""The server of `fairseq-milk serve`, over real connections: protocol, limits, and clients that behave badly."""

import concurrent.futures
import gc
import json
import socket
import time
import urllib.error
import urllib.request
from typing import Any, Dict, Iterator, List
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from fairseq_milk.console.errors import UserError
from fairseq_milk.generation.schedule import TokenSession
from fairseq_milk.live import Session
from fairseq_milk.live.rounds import Step
from fairseq_milk.live.serving.limits import Limits
from fairseq_milk.live.serving.running import Address
from tests.support.servers import Client, client, serving
from tests.support.stand_in_translators import stand_in

SENTENCE = "er hat das buch gelesen".split()
MODELS = {"milk": stand_in("milk"), "wait": stand_in("waitk")}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(MODELS, examples=["er hat gelesen"]) as url:
        yield url


def events(answers: List[Dict[str, Any]]) -> List[str]:
    return [f"{event['action']} {event['text']}" for answer in answers for event in answer["events"]]


def expect_close(connection: Client) -> int:
    """The code with which the server closes; messages before it are skipped."""
    with pytest.raises(ConnectionClosed) as closed:
        while True:
            connection.receive()
    assert closed.value.rcvd is not None
    return int(closed.value.rcvd.code)


# ---- the protocol ---------------------------------------------------------------------------------------------------


def test_hello_says_what_there_is_to_use(url: str) -> None:
    with client(url) as connection:
        hello = connection.hello
    assert hello["type"] == "hello" and hello["examples"] == ["er hat gelesen"]
    assert [model["name"] for model in hello["models"]] == ["milk", "wait"]
    milk, wait = hello["models"]
    assert (milk["mechanism"], milk["source"], milk["target"]) == ("milk", "de", "en")
    assert [knob["name"] for knob in milk["knobs"]] == ["threshold", "min_wait", "max_writes", "early_eos"]
    assert wait["knobs"][0] == {**wait["knobs"][0], "name": "k", "kind": "int", "default": 3, "low": 1, "high": 20}
    assert hello["limits"]["words"] == Limits().words


def test_every_word_is_answered_by_every_model_as_a_session_would(url: str) -> None:
    with client(url) as connection:
        answers = connection.say(SENTENCE, ["milk", "wait"], sentence=7)
    for name, translator in MODELS.items():
        whole = translator.translate(" ".join(SENTENCE))
        assert events(answers[name]) == [f"{event.action} {event.text}" for event in whole.schedule]
        last = answers[name][-1]
        assert last["text"] == whole.text and last["ended"] and last["done"] and last["sentence"] == 7
        assert whole.latency is not None and last["latency"] == whole.latency._asdict()
        assert [answer["words"] for answer in answers[name]] == [1, 2, 3, 4, 5, 5]
    assert answers["milk"][0]["text"] == "he" and answers["milk"][3]["text"] == "he"  # it waits for the verb
    assert answers["wait"][3]["text"] == "he has"


def test_knobs_are_those_of_the_sentence(url: str) -> None:
    with client(url) as connection:
        hasty = connection.say(SENTENCE, ["milk", "wait"], knobs={"milk": {"threshold": 0.3}, "wait": {"k": 1}})
        assert hasty["milk"][1]["text"] == hasty["wait"][1]["text"] == "he has"
        patient = connection.say(SENTENCE, ["milk"])
        assert patient["milk"][1]["text"] == "he"


def test_a_push_of_several_words_has_an_answer_for_each(url: str) -> None:
    with client(url) as connection:
        connection.send(type="begin", sentence=1, models=["wait"])
        connection.send(type="push", text="er hat\tdas")
        assert [connection.receive()["words"] for _ in range(3)] == [1, 2, 3]


def test_a_sentence_may_be_given_up_for_another(url: str) -> None:
    with client(url) as connection:
        connection.send(type="begin", sentence=1, models=["milk"])
        connection.send(type="push", text="er")
        answers = connection.receive(), connection.say(["sie"], ["milk"], sentence=2)["milk"]
    assert answers[0]["sentence"] == 1 and [answer["sentence"] for answer in answers[1]] == [2, 2]
    assert answers[1][-1]["text"] == "she"


def test_sessions_at_once_do_not_mix(url: str) -> None:
    def say(word: str) -> str:
        with client(url) as connection:
            return str(connection.say([word] * 20, ["milk", "wait"])["wait"][-1]["text"])

    words = [f"wort{i}" for i in range(24)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(say, words))
    assert texts == [" ".join([word.replace("wort", "word")] * 20) for word in words]


# ---- what is refused ------------------------------------------------------------------------------------------------

BEGIN = {"type": "begin", "sentence": 1}
REFUSED = {
    "not JSON": ("{", "JSON object"),
    "a list": ("[]", "JSON object"),
    "nested": ("[" * 4000, "JSON object"),
    "no type": ("{}", "'begin', 'push' or 'end'"),
    "no sentence": ('{"type": "push", "text": "er"}', "'begin' first"),
    "end of nothing": ('{"type": "end"}', "'begin' first"),
    "no number": ('{"type": "begin"}', "'sentence'"),
    "unknown model": (json.dumps({**BEGIN, "models": ["gpt"]}), "no model 'gpt' here: there are milk, wait"),
    "no model": (json.dumps({**BEGIN, "models": []}), "'models'"),
    "models of numbers": (json.dumps({**BEGIN, "models": [1]}), "'models'"),
    "knobs of none": (json.dumps({**BEGIN, "knobs": {"gpt": {}}}), "no model 'gpt'"),
    "unknown knob": (json.dumps({**BEGIN, "knobs": {"milk": {"k": 3}}}), "no knob 'k' here: there are threshold"),
    "fixed knob": (json.dumps({**BEGIN, "knobs": {"milk": {"max_len_b": 9}}}), "no knob 'max_len_b'"),
    "knob of a wrong type": (json.dumps({**BEGIN, "knobs": {"milk": {"threshold": "x"}}}), "must be a number"),
    "knob beyond its range": (json.dumps({**BEGIN, "knobs": {"wait": {"k": 21}}}), "between 1 and 20, got 21"),
    "infinite knob": ('{"type": "begin", "sentence": 1, "knobs": {"wait": {"min_wait": Infinity}}}', "whole number"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_messages_are_refused_with_a_sentence_and_the_connection_goes_on(url: str, case: str) -> None:
    message, reason = REFUSED[case]
    with client(url) as connection:
        connection.socket.send(message)
        error = connection.receive()
        assert error["type"] == "error" and reason in error["reason"]
        assert connection.say(["er"], ["wait"])["wait"][-1]["text"] == "he"


def test_a_binary_message_is_refused(url: str) -> None:
    with client(url) as connection:
        connection.socket.send(b"\x00")
        assert "JSON object" in connection.receive()["reason"]


@pytest.mark.parametrize("text, reason", [(5, "string"), (" ", "a word"), ("x" * 61, "60 letters")])
def test_bad_words_are_refused(url: str, text: Any, reason: str) -> None:
    with client(url) as connection:
        connection.send(type="begin", sentence=1)
        connection.send(type="push", text=text)
        assert reason in connection.receive()["reason"]


def test_a_sentence_is_not_longer_than_its_limit() -> None:
    with serving(MODELS, Limits(words=3)) as url, client(url) as connection:
        connection.send(type="begin", sentence=1, models=["milk"])
        connection.send(type="push", text="er er er er")
        answers = [connection.receive() for _ in range(4)]
    assert [answer["type"] for answer in answers] == ["answer"] * 3 + ["error"]
    assert "at most 3 words" in answers[3]["reason"]


def test_a_message_beyond_the_limit_closes_its_connection_only(url: str) -> None:
    with client(url) as good, client(url) as bad:
        bad.send(type="push", text="x " * 5000)
        assert expect_close(bad) == 1009
        assert good.say(["er"], ["wait"])["wait"][-1]["text"] == "he"


def test_a_model_that_fails_is_an_error_of_that_sentence_only() -> None:
    with serving({"bad": stand_in("milk", fails="und"), "good": stand_in("waitk")}) as url:
        with client(url) as one, client(url) as other:
            one.send(type="begin", sentence=1)
            one.send(type="push", text="und")
            reply = one.receive()
            while reply["type"] != "error":  # the good one may have been quicker
                reply = one.receive()
            assert reply["reason"] == "the model failed: RuntimeError"
            assert other.say(["er"], ["bad", "good"])["bad"][-1]["text"] == "he"
            assert one.say(["er"], ["bad"])["bad"][-1]["text"] == "he"


# ---- limits ---------------------------------------------------------------------------------------------------------


def test_there_are_only_so_many_sessions_and_a_place_comes_free() -> None:
    with serving(MODELS, Limits(sessions=2)) as url:
        with client(url), client(url):
            with client(url) as third:
                assert third.hello["type"] == "error" and "all 2 sessions" in third.hello["reason"]
                assert expect_close(third) == 1013
        wait_for_sessions(url, 0)
        with client(url) as again:
            assert again.hello["type"] == "hello"


def test_one_address_has_only_so_many_of_them() -> None:
    with serving(MODELS, Limits(sessions_per_client=1)) as url, client(url), client(url) as second:
        assert "your address" in second.hello["reason"]


def wait_for_sessions(url: str, count: int) -> None:
    deadline = time.monotonic() + 60
    while json.load(urllib.request.urlopen(f"{url}/api/health")) != {"status": "ok", "sessions": count}:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_an_idle_connection_is_closed() -> None:
    with serving(MODELS, Limits(idle_seconds=0.2)) as url, client(url) as connection:
        assert expect_close(connection) == 4000


def test_a_client_that_does_not_read_is_closed_without_harm_to_others() -> None:
    with serving(MODELS, Limits(send_seconds=0.5, words=10**6, message_bytes=10**6)) as url, client(url) as good:
        address = urlsplit(url)
        with socket.create_connection((address.hostname, address.port)) as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            with client(url, sock=deaf, max_queue=1) as connection:
                connection.send(type="begin", sentence=1, models=["wait"])
                connection.send(type="push", text="wort1 " * 100000)
                assert good.say(SENTENCE, ["wait"])["wait"][-1]["text"] == "he has the book read"
                wait_for_sessions(url, 1)


def test_a_busy_session_does_not_hold_up_the_others() -> None:
    """Three sessions always have words waiting, 5 ms each, on two threads: a fourth still gets its turn."""
    with serving({"slow": stand_in("waitk", seconds=0.005), "quick": stand_in("milk")}) as url:
        with client(url) as a, client(url) as b, client(url) as c, client(url) as quick:
            for busy in (a, b, c):
                busy.send(type="begin", sentence=1, models=["slow"])
                busy.send(type="push", text="wort1 " * 200)
            began = time.monotonic()
            quick.say(SENTENCE, ["quick"])
            assert time.monotonic() - began < 0.5  # 200 words of one of them alone take a second


def test_computing_does_not_hold_up_the_connections() -> None:
    with serving({"slow": stand_in("waitk", seconds=2)}) as url, client(url) as busy:
        busy.send(type="begin", sentence=1)
        busy.send(type="push", text="er")
        time.sleep(0.2)
        began = time.monotonic()
        wait_for_sessions(url, 1)
        assert time.monotonic() - began < 1


def test_nothing_is_kept_of_a_sentence_that_has_ended() -> None:
    """On open and on closed connections.  serve_load.py measures the memory after 10,000 sentences."""

    def alive() -> int:
        gc.collect()
        return sum(isinstance(one, (Session, TokenSession, Step)) for one in gc.get_objects())

    before = alive()
    with serving(MODELS) as url, client(url) as connection:
        for _ in range(5):
            connection.say(SENTENCE, ["milk", "wait"])
        with client(url) as other:
            other.send(type="begin", sentence=1)
            other.send(type="push", text="er")
            other.receive(), other.receive()
        wait_for_sessions(url, 1)
        assert alive() == before


# ---- who may use it -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
def test_pages_from_elsewhere_may_not_connect(url: str, origin: str) -> None:
    with pytest.raises(InvalidStatus) as refused, client(url, origin=origin):
        pass
    assert refused.value.response.status_code == 403


def test_its_own_page_and_named_origins_may_connect(url: str) -> None:
    with client(url, origin=url):
        pass
    with serving(MODELS, address=Address(port=0, origins=["https://milk.example"])) as other:
        with client(other, origin="https://milk.example"):
            pass


def test_on_this_machine_it_answers_to_names_of_this_machine_only(url: str) -> None:
    """Otherwise a page of another site could reach it under a name that resolves to 127.0.0.1."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(url, headers={"Host": "evil.example"}))
    assert refused.value.code == 400
    assert Address("0.0.0.0").access().hosts == ["*"] and not Address("0.0.0.0").local
    assert Address("::1").local and Address("localhost").local and not Address("example.org").local


@pytest.mark.parametrize("origin", ["milk.example", "https://milk.example/page", "ftp://milk.example"])
def test_an_origin_is_a_scheme_and_a_host(origin: str) -> None:
    with pytest.raises(UserError, match="--origin must be like"):
        Address(origins=[origin]).access()


def test_an_address_in_use_is_one_sentence(url: str) -> None:
    port = urlsplit(url).port
    assert port is not None
    with pytest.raises(UserError, match=f"cannot listen on 127.0.0.1, port {port}: .*use.*--port"):
        Address(port=port).listen()


# ---- the page -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path, kind", [("/", "text/html"), ("/main.js", "javascript"), ("/style.css", "text/css")])
def test_the_page_is_served_with_a_strict_policy(url: str, path: str, kind: str) -> None:
    with urllib.request.urlopen(url + path) as response:
        assert kind in response.headers["Content-Type"]
        policy = response.headers["Content-Security-Policy"]
        text = response.read().decode()
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert "https:" not in text and "<style" not in text and " style=" not in text


@pytest.mark.parametrize("path", ["/nothing", "/../serving/app.py", "/%2e%2e/serving/app.py", "/..%2f__init__.py"])
def test_nothing_else_is_served(url: str, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as missing:
        urllib.request.urlopen(url + path)
    assert missing.value.code == 404
