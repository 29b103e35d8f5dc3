"""`fairseq-milk serve`: translators behind a WebSocket, and the page that uses it.

Needs starlette, uvicorn and websockets (`pip install fairseq-milk[serve]`), which nothing else of `live` does.
docs/serve.md describes the protocol for other clients.
"""
