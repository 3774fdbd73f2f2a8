/** The hand-written parts of docs/reference/api. Links are relative to docs/. */

export const conventions = `
# The REST API

\`\`\`
curl -H "SERVICE-API-KEY: $KEY" -H 'content-type: application/json' -d '{"poolName":"default"}' http://127.0.0.1:8080/sandboxes
\`\`\`

[API by example](api-by-example.md) has a line for each operation. \`GET /openapi.json\` is this API as OpenAPI 3.1, and \`/docs\`
shows it in a browser. The daemon listens on \`127.0.0.1:8080\` unless [configured](configuration.md) otherwise, in plain HTTP or,
with \`tls.certFile\`, in HTTPS.

**Keys.** Every operation except \`/healthz\`, \`/readyz\`, \`/openapi.json\` and \`/docs\` needs an API key in the header
\`SERVICE-API-KEY\`. A key stands for a user of a team, with the role \`user\` or \`admin\`. The first start writes one of each to
\`keys/tenant.key\` and \`keys/admin.key\` in the data folder. An object of somebody else gets the same answer as a missing one,
except when you claim from somebody else's pool. An admin key also works as a tenant's key, for its own tenant. It can also list
all pools and sandboxes, read and end any sandbox by its id, and create keys for others. It runs nothing in other tenants'
sandboxes, and claims only from its own pools.

**Requests.** A body is a JSON object, \`application/json\` in UTF-8, at most 1 MiB; no body means \`{}\`. Refused with 400 are
nesting beyond 64 levels, a repeated key, the keys \`__proto__\`, \`constructor\` and \`prototype\`, half a surrogate pair, and
numbers that JSON readers do not agree on (integers beyond 2^53 − 1, anything beyond 1.8e308). Unknown fields are ignored, and
\`Warning: 299\` headers name up to 16 of them. With \`?strict=true\` an unknown field is refused with 400 \`INVALID_ARGUMENT\`. An
invalid value is refused the same way; \`detail.field\` is its path, and \`detail.allowed\` the choice. A query parameter may appear
once; unknown ones are ignored with a \`Warning\`. Headers have at most 16 KiB and must arrive within 10 s, the whole request
within 30 s.

**Paths** also work with \`/v1\` before them. They are exact: no trailing slash, no other case.

**Answers** are JSON in UTF-8. A POST that creates something answers 201, everything else 200. Fields without a value are omitted,
never null. In the tables \`a.b\` is a field of the object \`a\`, \`a[].b\` a field of each object in the list \`a\`, \`a.*.b\` of each
in the map \`a\`. Required there means required if the object is present. Timestamps are ISO 8601 in UTC. Durations are text such
as \`90s\`, \`30m\`, \`1h30m\`. Each answer has an \`X-Request-Id\`, which is also in the log: yours, if you sent 1 to 128 letters,
digits, dots, underscores and hyphens, else a new one.

**Lists** answer \`items\`, \`total\`, \`limit\` and \`offset\`, newest first.

**Repetition.** A POST may carry an \`Idempotency-Key\` of 1 to 255 printable ASCII characters, a new one for each effect. If you
repeat a request with the same API key, path and \`Idempotency-Key\` within 24 hours, you get the first 2xx answer again, byte for
byte, with \`Idempotency-Replayed: true\`. Other answers are not stored, so the repetition is carried out. This also works if the
daemon was killed in between: a claim, pool or key whose answer was lost is found again. Another body under the same key gets 422,
a repetition before the first answer 409. Answers over 64 KiB are not stored, and at most 25,000 answers of one API key.
\`exec\` and \`exec-token\` ignore the header.

**Versions.** A GET of one sandbox or pool has an \`ETag\`, \`"REVISION-VIEW"\`. With \`If-None-Match\` it gets 304 while the view is
the same; running seconds do not count. A PUT with \`If-Match\` gets 412 if the revision has changed.

**Deprecated operations** work in full. \`Deprecation\` says since when, \`Link\` with \`rel="successor-version"\` what replaces
them, and \`Sunset\` when they end, once that is decided (\`deprecation.sunset\`).

**Names.** \`{sandboxId}\` is a UUID, version 7, in lower case. \`{name}\` is a DNS label: 1 to 63 of a-z, 0-9 and inner hyphens.
The cluster's name may stand before both, as in a fleet: \`local.UUID\`, \`local::NAME\`. Another cluster's name gets 404
\`CLUSTER_NOT_FOUND\`.
`;

export const terminal = `
# Terminal

\`GET /ws/clusters/{clusterID}/sandboxes/{sandboxId}/terminal?token=TOKEN&cols=80&rows=24\` as a WebSocket opens a login shell
(bash, else sh) in a terminal in the sandbox. [A command by terminal](terminal.md) shows how a program uses it.

- \`{clusterID}\` is the setting \`clusterId\`, by default \`local\`. \`cols\` and \`rows\` are 1 to 1000.
- The token comes from [\`POST /sandboxes/{sandboxId}/exec-token\`](#post-sandboxessandboxidexec-token). It is used up once the
  sandbox is known to run and has room for one more terminal. A refusal before that leaves it valid. A token that is sent to
  another sandbox becomes invalid.
- To keep the token out of the address, send it as a subprotocol, \`sandpool.token.TOKEN\`.

| | without a subprotocol | with \`sandpool.terminal.v1\` |
| --- | --- | --- |
| to the terminal | every frame, text or binary, is input | binary frames are input, text frames are JSON |
| from the terminal | binary frames | binary frames; text frames are JSON |

Text frames in: \`{"type":"resize","cols":120,"rows":40}\` and \`{"type":"signal","name":"INT"}\`. The name is INT, TERM, HUP, QUIT,
KILL, TSTP, CONT, WINCH, USR1 or USR2; the foreground process group gets the signal. A text frame has at most 4 KiB, and at most
100 are allowed a second. Text frames out: \`{"type":"exit","exitCode":0}\` as the last one, and \`{"type":"error","error":"…"}\`.

Nothing is dropped: if one side does not read, the other one stops. A message to the terminal is at most 64 KiB. The daemon pings
every 20 s, and closes a peer that is gone within 30 s. A sandbox has at most 16 terminals. If the connection closes, the shell
gets SIGHUP, and remaining processes of the terminal are killed.

| close code | why |
| --- | --- |
| 1000 | the shell ended |
| 1009 | a message was too long |
| 1011 | the link to the shell was lost (the spawner ended) |
| 1012 | the daemon stops |
| 4001 | the key that the token was issued to was revoked, or has expired |
| 4004 | the sandbox ended |
| 4008 | the reader accepted no output for 60 s |

Before the upgrade, a request is refused with an ordinary error: 400 for a malformed handshake or size, 401 \`INVALID_TOKEN\` for
any fault of the token, 403 \`FORBIDDEN\` for a web page of another origin (\`terminal.allowedOrigins\`), 404 \`CLUSTER_NOT_FOUND\`,
409 \`SANDBOX_NOT_RUNNING\`, 429 \`TOO_MANY_TERMINALS\`, 503 \`UNAVAILABLE\`.
`;

export const endpoints = `
# Endpoints

[Endpoints](network.md) are ports of a sandbox that the daemon publishes. A request to
\`/sandboxes/{sandboxId}/endpoints/{name}/\`, by any method and as WebSocket too, is forwarded to that port inside the sandbox, and
the sandbox's answer comes back with its status. The request needs a key, and the sandbox must be the caller's own and Running.

- Bodies pass unchanged, both ways, without a limit of length or time; if one side does not read, the other one stops. Trailers,
  \`Expect: 100-continue\` and streams of events work. The sandbox's server gets \`Host: localhost:PORT\`, the path after the
  endpoint's name, and \`X-Forwarded-For\`, \`-Proto\`, \`-Host\`, \`-Prefix\` and \`X-Request-Id\`.
- Not forwarded: the key, cookies, headers of one connection (\`Connection\` and what it names), and headers of proxies
  (\`Forwarded\`, \`X-Forwarded-*\` and \`X-Real-IP\` of the client). \`Authorization\` passes.
- Removed from the answer: \`Set-Cookie\`, and headers for the daemon's whole origin, such as \`Clear-Site-Data\`, \`Alt-Svc\` and
  \`Strict-Transport-Security\`. Added: \`Content-Security-Policy: sandbox …\`, so that a page has an origin of its own. A redirect
  to a path of the sandbox stays within the endpoint.
- Traffic in either direction postpones the idle timeout; an open connection without traffic does not. Connections end with the
  sandbox.
- A request without an answer for 300 s gets 504. A side that reads nothing for 60 s is disconnected. A sandbox may have 256
  requests and WebSockets in progress, a tenant 1,024.

The daemon itself refuses with 401 and 404 as for other operations, 404 \`ENDPOINT_NOT_FOUND\`, 409 \`SANDBOX_NOT_RUNNING\`,
429 \`TOO_MANY_CONNECTIONS\`, 502 \`ENDPOINT_UNREACHABLE\`, 503 \`UNAVAILABLE\`, 504 \`ENDPOINT_TIMEOUT\`.
`;

export const errorBody = `
## Errors

\`{"error": "…", "errorCode": "…", "detail": {…}}\`. \`error\` is for people, \`errorCode\` for programs. \`detail\` is present if the
[table](#error-codes) says so; with \`API_KEY_REQUIRED\` it is null. 429 and 503 carry \`Retry-After\` in whole seconds. Any
operation may also answer 408, 431, 500, and 503 while the daemon stops.
`;
