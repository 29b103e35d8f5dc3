"""`fairseq-milk serve`: a WebSocket for translators, and a web page that uses it.

Only this package needs starlette, uvicorn and websockets (`pip install fairseq-milk[serve]`).
docs/reference/serve.md describes the protocol for other clients.
"""
