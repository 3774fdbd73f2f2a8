/** What the generated API page says around its tables. */

export const conventions = `
# The REST API

The daemon listens on \`127.0.0.1:8080\` unless [configured](configuration.md) otherwise, in plain HTTP or, with
\`tls.certFile\`, in HTTPS.

**The document.** \`GET /openapi.json\` is this API as OpenAPI 3.1, every operation with what it takes, answers and refuses;
\`/docs\` shows it in a browser, without reaching any other host.
[API by example](api-by-example.md) has a line for each operation.

**Keys.** Every operation but \`/healthz\`, \`/readyz\`, \`/openapi.json\` and \`/docs\` takes an API key in the header \`SERVICE-API-KEY\`. A key stands for a
user of a team, with the role \`user\` or \`admin\`. The first start writes one of each to \`keys/tenant.key\` and
\`keys/admin.key\` in the data folder. What belongs to someone else is answered exactly like what does not exist; only a claim
from another's pool says that it is another's. An admin's key is also a tenant's key, for the tenant that it names. Beyond
that it lists everyone's pools and sandboxes, sees and ends any sandbox by its id, and makes keys for others. It runs nothing
in another's sandbox, and claims from its own pools alone.

**Requests.** A body is a JSON object, \`application/json\` in UTF-8, at most 1 MiB; without a body it is \`{}\`. Refused with 400
are also: nesting beyond 64, a key that appears twice, the keys \`__proto__\`, \`constructor\` and \`prototype\`, half a surrogate
pair, and numbers that JSON readers do not agree on (integers beyond 2^53 − 1, anything beyond 1.8e308). Unknown fields of a
body are let pass, nothing of them is kept, and a \`Warning: 299\` header names each (16 at most). With
\`?strict=true\` the first of them is refused: 400 \`INVALID_ARGUMENT\`, and \`detail.field\` is its path. Known ones are checked: 400
\`INVALID_ARGUMENT\` with \`detail.field\`, and with \`detail.allowed\` where there is a choice. Values out of bounds are refused,
never moved into bounds. A query parameter is given once; unknown ones are let pass,
and a \`Warning\` names them. Headers must be in within 10 s and take
at most 16 KiB, the whole request within 30 s.

**Paths** are the same with \`/v1\` before them. They are exact: no trailing slash, no other case. A whole URL in the place of the path (RFC 9112, 3.2.2)
is its path, for its host; a fragment, user information or another scheme there is refused with 400.

**Answers.** JSON in UTF-8. A POST that makes something answers 201, all else 200. Fields without a value are left out, never
null. In the tables \`a.b\` is a field of the object \`a\`, \`a[].b\` one of each object in the list \`a\`, \`a.*.b\` one of each in the map \`a\`; what is
required there is required where the object is. Timestamps are ISO 8601 in UTC. Durations are text such as \`90s\`, \`30m\`, \`1h30m\`. Each answer has an \`X-Request-Id\`:
yours, if you sent one of 1 to 128 letters, digits, dots, underscores and hyphens, else a new one. The log has it too.

**Lists** answer \`items\`, \`total\`, \`limit\` and \`offset\`, newest first, the higher id first among equals.

**Repetition.** A POST may carry an \`Idempotency-Key\` of 1 to 255 printable ASCII characters, made up anew for each thing to be
done. Its repetitions by the same API key to the same path within 24 hours get the first one's answer, byte for byte and with
\`Idempotency-Replayed: true\`, if that was 2xx; any other answer is not kept, and the repetition is carried out. That holds
also when the daemon was killed in between: a claim, a pool or a key whose answer was lost is found again. Another body under the same key is
refused with 422, a repetition before the first answer with 409. Answers over 64 KiB are not kept, nor is more than the last
25,000 answers of one API key. \`exec\` and \`exec-token\` ignore the header.

**Versions.** A GET of one sandbox or pool has an \`ETag\`, \`"REVISION-VIEW"\`. \`If-None-Match\` with it gets 304 while the view is
the same; running seconds do not count. \`If-Match\` with it lets a PUT through while the revision is the same, else 412.

**Deprecated operations** work in full and say so: \`Deprecation\` since when, \`Link\` with \`rel="successor-version"\` what
replaces them, \`Sunset\` when they are to go, once that is settled (\`deprecation.sunset\`).

**Names.** \`{sandboxId}\` is a UUID, version 7, in lower case. \`{name}\` is a DNS label: 1 to 63 of a-z, 0-9 and inner hyphens.
Both may have the cluster's name before them, as they do in a fleet: \`local.UUID\`, \`local::NAME\`. Another cluster's name is
404 \`CLUSTER_NOT_FOUND\`; a pool's name with an image after \`//\` is 400.
`;

export const terminal = `
# Terminal

\`GET /ws/clusters/{clusterID}/sandboxes/{sandboxId}/terminal?token=TOKEN&cols=80&rows=24\` as a WebSocket opens a login shell
(bash, else sh) in a terminal in the sandbox. \`{clusterID}\` is the setting \`clusterId\`, \`local\` unless changed. The token is
that of [\`POST /sandboxes/{sandboxId}/exec-token\`](#post-sandboxessandboxidexec-token); it is used up once the sandbox is known to
run and has room for one more terminal. A refusal before that leaves it good, but where it was brought to another sandbox than its
own: then it is good nowhere. [A command by terminal](terminal.md) shows how a program uses it. It may also be offered as a subprotocol, \`sandpool.token.TOKEN\`, so that no secret stands in an address. \`cols\` and \`rows\` are 1 to 1000.

| | without a subprotocol | with \`sandpool.terminal.v1\` |
| --- | --- | --- |
| to the terminal | every frame, text or binary, is input | binary frames are input, text frames are JSON |
| from the terminal | binary frames | binary frames; text frames are JSON |

Text frames in: \`{"type":"resize","cols":120,"rows":40}\` and \`{"type":"signal","name":"INT"}\`, where the name is INT, TERM, HUP,
QUIT, KILL, TSTP, CONT, WINCH, USR1 or USR2 and the signal goes to the foreground process group. At most 4 KiB each, 100 a
second. Text frames out: \`{"type":"exit","exitCode":0}\` as the last one, and \`{"type":"error","error":"…"}\`.

Nothing is dropped: a side that does not read stops the other one. A message to the terminal is at most 64 KiB. The daemon
pings every 20 s; a peer that is gone is closed within 30 s, and one that takes no output for 60 s with 4008. A sandbox has at
most 16 terminals. Closing the connection hangs up the terminal: the shell gets SIGHUP, and what stays is killed.

| close code | why |
| --- | --- |
| 1000 | the shell ended |
| 1009 | a message was too long |
| 1011 | the link to the shell was lost (the spawner ended) |
| 1012 | the daemon stops |
| 4001 | the key that the token was issued to was revoked, or has expired |
| 4004 | the sandbox ended |
| 4008 | the reader was too slow |

Before the upgrade it is refused with an ordinary error: 400 for a malformed handshake or size, 401 \`INVALID_TOKEN\` whatever is
wrong with the token, 403 \`FORBIDDEN\` for a web page of another origin (\`terminal.allowedOrigins\`), 404 \`CLUSTER_NOT_FOUND\`,
409 \`SANDBOX_NOT_RUNNING\`, 429 \`TOO_MANY_TERMINALS\`, 503 \`UNAVAILABLE\`.
`;

export const endpoints = `
# Endpoints

A template names [endpoints](network.md): ports of its sandboxes that are served under the daemon. Whatever comes under
\`/sandboxes/{sandboxId}/endpoints/{name}/\`, by any method and as WebSocket too, is forwarded to that port inside the
sandbox, and the sandbox's answer comes back with its status. \`GET /sandboxes/{sandboxId}\` shows the URLs. The key is needed as
everywhere, and the sandbox must be the caller's own and Running.

- Bodies go through as they come, both ways, without a limit of length or time; a side that does not read stops the other one.
  Trailers, \`Expect: 100-continue\` and streams of events work as they are. The sandbox's server gets \`Host: localhost:PORT\` and
  the path behind the endpoint's name, unchanged; and \`X-Forwarded-For\`, \`-Proto\`, \`-Host\`, \`-Prefix\` and \`X-Request-Id\`.
- Not forwarded: the key, cookies, what belongs to one connection (\`Connection\` and what it names), what proxies say
  (\`Forwarded\`, \`X-Forwarded-*\` and \`X-Real-IP\` of the client). \`Authorization\` is the sandbox's own.
- Not answered: \`Set-Cookie\`, and headers that would hold for the daemon's whole origin, such as \`Clear-Site-Data\`,
  \`Alt-Svc\`, \`Strict-Transport-Security\`. Added: \`Content-Security-Policy: sandbox …\`, so that a page has an origin of its own.
  A redirect to a path of the sandbox's own stays within the endpoint.
- Traffic either way counts against the idle timeout; a connection without traffic does not. Connections end with the sandbox.
- Without an answer for 300 s the request is answered 504; a side that takes nothing for 60 s is cut. A sandbox may have
  256 requests and WebSockets under way, a tenant 1,024.

Refused in the daemon's own words, with an error as everywhere: 401 and 404 as elsewhere, 404 \`ENDPOINT_NOT_FOUND\`,
409 \`SANDBOX_NOT_RUNNING\`, 429 \`TOO_MANY_CONNECTIONS\`, 502 \`ENDPOINT_UNREACHABLE\`, 503 \`UNAVAILABLE\`, 504 \`ENDPOINT_TIMEOUT\`.
`;

export const errorBody = `
## Errors

\`{"error": "…", "errorCode": "…", "detail": {…}}\`. \`error\` is for people, \`errorCode\` for programs. \`detail\` is there where the
table says so; with \`API_KEY_REQUIRED\` it is null. 429 and 503 carry \`Retry-After\` in whole seconds. Any operation may also
answer 408, 431, 500, and 503 while the daemon stops.
`;
