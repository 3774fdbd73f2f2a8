import { APPROVAL_NOTES } from './approval-notes.ts';
import { PROCESS_NOTES } from './process-notes.ts';

/** Descriptions by operationId, for the OpenAPI document and the API page. */
export const OPERATION_NOTES: Readonly<Record<string, string>> = {
  getHealth: 'Answers as soon as the process accepts requests. It checks nothing else.',
  getReadiness:
    'Answers 503 with the same body and `Retry-After` if sandboxes can be neither started ' +
    'nor reached.',
  getShards: `
Pools are divided into 16 shards. For each shard, the replica that holds its lease does the
background work: it fills pools and ends idle sandboxes. Any replica answers for all shards; a
single daemon leads all of them.`,
  listActors: `
Every replica hosts an actor for each sandbox, pool, env member and autoscaling group: a state
machine that mirrors the durable record and decides what to do. A page costs the same however many
actors there are. Actors that change while pages are read may appear twice or not at all. Without
\`kind\`, all kinds are listed, one after the other. An actor that threw repeatedly has the state
\`broken\`. A manager lists one cluster after the other, its own first; \`pool\` names one of its
own pools, or a pool of another cluster as \`west::default\`.`,
  getActor: `
The actor's state, the reason for it, what it waits for, how it got there, its unanswered
requests, and the durable record beside the actor's view of it. Any replica answers with the view
of the leading replica. If that replica does not answer within a second, the answering replica
shows its own view, and \`seenBy.note\` says so. A manager also shows actors of other clusters:
\`west.\` precedes the id of a sandbox or approval, \`west::\` any other name.`,
  followActor: `
Transitions as the leading replica sees them, whichever replica answers: its own at once,
another's within half a second. \`seen-by\` comes first and whenever another replica leads. Its
\`replica\` says whose view follows, and its \`note\` why that is not the leader's view, or why
nothing follows now. Each replica counts for itself: with another leader the numbers change, and a
transition that both saw may appear twice. \`reset\`: some transitions are missing here. \`end\`:
the actor is gone. If a stream ends without \`end\`, request it again.`,
  getQueues:
    'Any replica can answer for any other replica, by asking it. If the other replica does ' +
    'not answer within a second, the answer is 503. The next two operations work the same ' +
    'way.',
  getDriver: 'On the embedded daemon bubblewrap and its spawner, on Kubernetes Pods.',
  getReflectors:
    'Each mirrors one kind of object of the API server. If one is out of date, the replica ' +
    'is not ready.',
  rebuildActor: `
The actor is discarded and rebuilt from the durable record and the running process. The sandbox,
pool or env does not change, and commands in progress continue. A \`broken\` actor works again. If
the actor waits for an answer that a new actor would not know, the answer is 409.`,
  getMachine: 'Use `?format=` or `Accept` to get Mermaid instead of JSON.',
  listAudit: `
The last 5,000 lines of the [audit](observing.md#audit) of all replicas, by time; the files of
each replica have more. A line appears about 50 ms after the answer that it describes. Lines that
a replica wrote while Redis was down are missing, which shows as a gap in the numbers. Use
\`nextCursor\` for the next page. A manager shows one list over all clusters, newest first by
their clocks; each line has its \`clusterID\`.`,
  ...APPROVAL_NOTES,
  listTemplateClusters: `
Only at the [manager](fleet.md#global-templates), which asks each connected cluster, for up to 2
s. Elsewhere, and for a template that is not global, the list is empty.`,
  getManagers: 'Addresses are those of the settings; links are those of the replica that answers.',
  setManagers: `
For a [worker](fleet.md#cutting-a-manager-off). With \`cutOff: true\` every replica closes its
links to all managers within seconds and opens no new ones; the answering replica has already done
so. Requests over these links are cut, promoted keys get 401, and copies of global templates
become the cluster's own. The setting is stored and survives restarts, until \`cutOff: false\`. It
needs a key of the cluster itself: a request over a link or with a promoted key gets 403
\`FORBIDDEN\`. If there is no manager, the answer is 400.`,
  getLogLevel: 'Each replica has its own level.',
  setLogLevel:
    'Changes the level of the replica that answers. A restart restores `logLevel` of the ' +
    'settings.',
  claimSandbox: `
Takes the pool's longest idle instance and makes it the caller's. The claim is on disk before the
answer, so a claim that was answered with 201 survives a kill -9 of the daemon. No other claim
ever gets the same instance. The sandbox is Running at once; there is nothing to wait for.

Callers can claim only from their own pools; the pool is looked up in the caller's namespace. With
no idle instance the answer is 429 \`POOL_EXHAUSTED\`: \`Retry-After\` is 1 s while instances are
starting, else 5 s. After 5 s without a result the answer is 503, and the claim may still have
succeeded: list your sandboxes before you repeat it.

\`env\` and \`metadata\` are written in the same step as the claim, and end with it. Variables are
encrypted on disk. Commands and terminals get them; the main process does not, because it is
already running. A repeated request under an \`Idempotency-Key\` must have the same values.

All \`files\` are written before the answer, as by \`PUT …/files\` with \`parents\`. If one cannot
be written within 20 s, the claim is undone and \`detail.field\` of the error names the file; a
repeated request under an \`Idempotency-Key\` then claims again. A repeated request that finds the
claim of a request without an answer writes the files again; if that fails, \`detail.sandboxId\`
names the sandbox.

With \`waitTimeoutSeconds\` the claim waits for an instance, and then for as long as a claim may
take: first come, first served, over all replicas. A claim that does not wait counts as last, and
is refused if the waiting claims take all instances. The quota is checked when an instance is
available. The wait ends with 429 \`POOL_EXHAUSTED\` when its time is up, with 409 if the pool is
deleted, with 503 if the daemon stops (repeat it at once), and with the client's connection. At
most 256 claims wait for a pool, and 512 claims of a tenant on one replica; beyond that the answer
is 429 \`TOO_MANY_WAITING\`. Under an \`Idempotency-Key\` the request is in flight while it waits.`,
  listSandboxes: `
The caller's sandboxes, newest claim first. Without \`phase\`: the claimed ones, and those that
finished within the last 24 hours (\`history.listWindow\`). With \`poolName\`: live sandboxes of
the pool that has this name now, or if there is none, of all pools that had it; and finished
sandboxes of each pool that had it. \`phase=Idle\` and \`phase=Starting\` show the unclaimed
instances of the caller's pools. \`metadata.job=42\`, or \`metadata[job]=42\`, shows live
sandboxes with this metadata in their claim; with several pairs, all must match. Finished
sandboxes cannot be found by metadata: with \`phase=Completed\` the answer is 400.`,
  getSandbox:
    "One live sandbox, or an unclaimed instance of the caller's pools. A finished sandbox " +
    'is 404; `GET /sandboxes?phase=Completed` shows it with `endReason`, and `GET ' +
    '/sandboxes/{sandboxId}/events` shows its events. Admins see any sandbox.',
  isReady: `
Runs the [readiness probes](templates.md#readiness-probes) of the container and of each endpoint
now. Answers 503 with the same body, without \`Retry-After\`, if a probe fails. An endpoint is
ready if its own probe and the container's probe pass; without probes, it is ready. \`message\`
gives the reason if it is not. A sandbox that is neither Running nor Idle is not ready. The
request does not count as activity.`,
  deleteSandbox: `
Ends the sandbox with all its processes and files. The end is on disk before the answer; the
processes are gone a few milliseconds later, and the pool starts a new instance. Allowed in every
state. Repeating it is harmless until the sandbox is finished; then it is 404. An unclaimed
instance of the caller's pools is retired and replaced. Admins can end any sandbox.`,
  execInSandbox: `
Runs one command and answers when it has ended. It runs as the sandbox's user, hardened like the
main process. Processes that it leaves in the background continue. If the client disconnects, the
command is ended. At most 64 run in a sandbox at a time. While a command runs, the sandbox is not
idle. Replacement: \`POST /sandboxes/{sandboxId}/processes\`, which streams and has no time limit.`,
  ...PROCESS_NOTES,
  getSandboxLogs: `
The output of the main process, both stdout and stderr. For other processes, use \`GET
/sandboxes/{sandboxId}/processes/{processId}/output\`; \`GET …/processes\` lists them. The owner
can read a finished sandbox's output as long as the sandbox is stored (\`history.retention\`),
within \`logs.fileBytes\` and \`logs.totalBytes\`: beyond these, older lines are deleted first.
The output of an unclaimed instance belongs to the pool's owner.

With \`Accept: text/plain\` the answer has the raw bytes. With \`follow\` the last lines come
first, and then each new line, as events with JSON in \`data\`: \`line\`, with \`timestamp\` if
\`timestamps\` is set, and with \`partial\` if the line is not complete yet. The event \`end\`
says that the sandbox has ended, \`reset\` that earlier lines are no longer stored. A client that
reconnects with \`Last-Event-ID\` continues where it was. Every 15 s without a line the stream
sends a comment. A client that reads nothing for 30 s is disconnected. At most 16 clients follow
one sandbox, and 64 the sandboxes of one tenant.`,
  listSandboxEvents: `
From its creation to its end, with the reason for the end. The owner can read a finished sandbox's
events as long as the sandbox is stored (\`history.retention\`). Admins see the events of any
sandbox.`,
  listPoolEvents: `
When the pool was created, changed, resized by hand, filled and deleted, and why its instances
could not start. For decisions of its autoscaling group, see [the group's
decisions](#get-envsnameautoscalinggroupsgroupnamedecisions). A pool that keeps failing for the
same cause has one event. Events are stored while there is a pool of that name, and for
\`history.retention\` after; for each owner, those of the 100 pools with the latest events.
Everyone who may claim from a pool can read its events; the owner of an earlier pool of that name
can read that pool's. Admins see all.`,
  readFile: `
The bytes of a file, with \`ETag\`, \`Accept-Ranges\` and \`X-File-Mode\`; honours \`Range\`,
\`If-Range\`, \`If-None-Match\` and \`If-Match\`. The reader gets the file that was opened, even
if another file takes its name. With \`Accept: application/x-tar\`, a folder with everything in it
as an archive; with both types, whichever exists, as \`Content-Type\` says. If the connection ends
early, the answer is incomplete. Devices, fifos and sockets are never opened.`,
  writeFile: `
The body, of any length, replaces the file at once when it has arrived completely: a reader sees
the old file or the new one, and an interrupted body changes nothing. \`If-Match\` replaces only
the version with that \`ETag\`; \`If-None-Match: *\` (412) and \`overwrite=false\` (409) replace
nothing. With \`Content-Type: application/x-tar\` the body is unpacked into the folder \`path\`,
which is created if it is missing. If an archive has a bad entry, the entries before it stay. A
refusal may arrive before all of the body was sent: read it, and stop sending.`,
  removeFile: 'Removes a link, but not its target.',
  listFiles: `
Links are shown but not followed. Sorted by the bytes of the names. An entry that exists
throughout is shown exactly once, however many pages there are. Names that are not UTF-8 are in
base64 and marked as such.`,
  moveFile:
    'Without `overwrite`, 409 if the target exists. A move from one file system to another, such ' +
    'as from `/tmp` to the home, copies the file and then removes it; a folder answers 409.',
  makeFolder: '201 if the folder was created; with `parents`, 200 if it existed.',
  watchFiles: `
Changes from now on, while the folder exists. A renamed file appears as \`removed\` and
\`created\`. Watching does not keep the sandbox from being idle.`,
  followEvents: `
Server-Sent Events of the caller's own sandboxes, unclaimed instances and pools, from now on; each
message's \`data\` is one event as below. A client that reconnects with \`Last-Event-ID\` gets the
events that it missed. The last 8,192 are stored, across restarts if several daemons share them.
If the events are no longer stored, the client first gets an event \`reset\`: read the lists
again. Every 15 s without an event the stream sends a comment. A client that reads nothing for 30
s is disconnected. At most 16 streams of one tenant.

A manager sends the events of all clusters in one stream, each cluster's in order. Its ids contain
a position for each cluster. An event \`cluster\` with \`{"clusterID", "incomplete"}\` says that a
cluster cannot be reached, or can be reached again; its events then continue where they were.
\`reset\` has a \`clusterID\` if it concerns one cluster.`,
  createExecToken:
    'The token opens one [terminal](#terminal) in this sandbox, within 30 seconds. The ' +
    'answer must not be cached (`Cache-Control: no-store`).',
  setSandboxState: `
A paused sandbox is Running with \`paused: true\`: none of its processes run. It keeps its memory
and its place in the quota, also across restarts of the daemon. Its idle timeout stops, and starts
again from the beginning when the sandbox resumes. Its maximum lifetime does not stop, and DELETE
works as usual. Commands in progress pause too, but their time limit keeps running.

Calls that need the sandbox running (a command, a terminal, an endpoint) resume it if its claim
had \`autoResume\`; otherwise they get 409 \`SANDBOX_NOT_RUNNING\` with a hint. If this deployment
cannot pause, such as on Kubernetes, the answer is 501 \`FEATURE_DISABLED\`, and the gate
\`pause\` is false.`,
  setIdleTimeout: `
Needs one of the two fields, not both. The request counts as activity, so the idle time starts
again. Commands in progress and bytes of a terminal in either direction are activity too. After a
restart of the daemon every sandbox counts as just used.`,
  createPool: `
The pool belongs to the caller, and its instances start at once. Its name is unique in the
namespace. Instances are made from a template, by name or inline (\`template\`), or from
\`overrides.image\` only. The size of the first container comes from the first of these that is
given: \`cpu\` and \`memory\`, \`inlineResources\`, \`instanceType\` times \`multiplier\`, the
template. A change of the template reaches the pool automatically, unless
\`updateStrategy.autoUpdate\` is false. Registry passwords are stored separately and never shown.
With \`clusterID\`, a manager creates the pool on that cluster of its [fleet](fleet.md) and
answers with the name \`west::big\`.`,
  listPools: "The caller's pools.",
  getPool: 'Admins see, change and delete any pool of their own namespace by its name.',
  updatePool: `
With fewer replicas, surplus unclaimed instances are retired: those still starting first, then the
longest idle. Running sandboxes are never changed. Omitted fields stay unchanged, also within
\`overrides\` and \`updateStrategy\`. A list, labels and annotations are replaced as a whole;
\`templateName\` and \`template\` replace each other. Null unsets a field, so that the template's
value or the default applies again; this works for all fields except \`replicas\`,
\`templateName\` and \`template\`. A change to how instances are made creates a new revision;
without \`autoUpdate\` it waits for sync-template. An empty body changes nothing.`,
  syncPool:
    "Applies its current template and its owner's settings, even without `autoUpdate`. Its " +
    'replicas stay. Not needed: changes of templates reach pools automatically, and PUT ' +
    'changes the rest.',
  previewPoolSync:
    "Writes nothing. The YAML has the template with the pool's size and overrides; after a " +
    'sync, instances are made from exactly this.',
  deletePool:
    'New claims fail (409), unclaimed instances are removed, and then the pool. Running ' +
    'sandboxes continue until they end. Repeating it is harmless; `force` may be added ' +
    'later. The pool of a member belongs to its env: 409, and `detail` names both.',
  createEnv: `
An env links a template, its differences from the template (\`overrides\`), and members, each of
which is a pool. This creates it without members. With \`templateRef.version\` it stays at that
version of the template, otherwise it follows the template. See [envs](envs.md). A user has at
most 1,000.`,
  listEnvs: "The caller's envs.",
  getEnv: 'Admins see, change and delete any env of their own namespace by its name.',
  replaceEnv: `
Replaces \`templateRef\`, \`overrides\`, \`labels\` and \`annotations\`. Omitted fields are
removed, except registry passwords, which stay until they are replaced. \`name\` and \`mode\` must
not change. Members follow automatically, within their \`updateStrategy\`.`,
  patchEnv: `
A JSON merge patch (RFC 7396): \`null\` removes, objects merge, lists are replaced as a whole. The
body may also be \`application/merge-patch+json\`. Members follow automatically, within their
\`updateStrategy\`; running sandboxes are never changed.`,
  deleteEnv:
    'Removes its members, and then the env. Refused while its sandboxes run, unless ' +
    '`force` is set, which ends them. Repeating it is harmless.',
  syncEnv: `
Renders every member again from the current template and the env's overrides, even without
\`autoUpdate\`. Replicas stay. Members are independent: if some fail, the others stay synced, and
the answer is \`ENV_SYNC_PARTIAL\`.`,
  addMember: `
Creates a pool with the member's name, and an enabled autoscaling group of the same name with the
member's bounds (0 and its replicas if unset). With \`scalingGroup\` the member joins that group
instead. The pool belongs to the env: change it here. \`PUT /sandboxpools/{name}\` accepts only
\`replicas\`, and only while autoscaling is off. At most 64 members in an env.`,
  listMembers: 'As `GET /sandboxpools/{name}` shows each.',
  updateMember:
    'A change to how instances are made is rolled out as for any pool. An empty body ' +
    'changes nothing.',
  deleteMember: `
New claims fail (409). Unclaimed instances are removed, then the pool, then the member, and its
group if the group has no other member. Running sandboxes continue until they end, unless
\`force\` is set. Repeating it is harmless until the member is gone; then it is 404.`,
  listGroups: 'A group sizes the members that name it as their `scalingGroup`.',
  getGroup: 'Its current state.',
  listDecisions: `
The last 100 decisions: what the group saw, wanted and did, and why not more. A group that is in
its wanted state decides nothing. Decisions are stored as long as their env, or through retention.`,
  updateGroup:
    'Omitted fields stay unchanged, also within the policies. An empty body changes nothing.',
  deleteGroup:
    'Its members are no longer sized automatically; their owner sets the `replicas` of ' +
    'their pools.',
  getQuotas: `
For all the caller's keys together, over all their pools. At a manager, the sums over all
clusters, each of which has its own quotas; with \`clusterID\`, those of one cluster. Usage is
exact. The answer is 503 while usage is being recounted. A request that would exceed a limit gets
429 \`QUOTA_EXCEEDED\`. \`cpu\` and \`memory\` are the limits of each instance, times the replicas
of its pool; they are shown if they are limited.`,
  getQuotasOf:
    'A user without their own limits has the configured limits (`quotas.*`), whether or ' +
    'not they have a key yet.',
  setQuotasOf: `
Every daemon applies it within a moment. A limit below the usage ends nothing, but grants nothing
more until usage has dropped. An empty body changes nothing. If a template's new version would
give a pool's instances more \`cpu\` or \`memory\` than is left, it is not rolled out: the pool
shows \`QuotaExceeded\`, and the daemon tries again each minute.`,
  listTemplates: 'Templates belong to the deployment: every tenant sees all of them.',
  getTemplate:
    'Its current state. A pool shows the version from which its instances are made ' +
    '(`templateVersion`).',
  createTemplate: `
\`crdJson\` is the document of [templates](templates.md) as text. An unknown field is refused with
its path (\`crdJson.spec.containers[0].imagePull\`), and so are fields that this daemon cannot
run. Refused for safety are \`privileged\`, \`allowPrivilegeEscalation\`, added capabilities,
\`procMount\`, \`hostPath\`, \`hostPort\`, \`hostNetwork\`, \`hostPID\`, \`hostIPC\`, service
accounts, and \`..\` in a path. For a template with \`syncSource\`, a fleet's manager answers when
the connected clusters have it, or after 5 s.`,
  updateTemplate: `
Creates a new version, unless nothing changes; an empty body changes nothing. The last 20 versions
are stored (fewer if the template is larger than about 13 KiB). Its pools follow automatically;
running sandboxes are never changed. A \`crdJson\` is checked as at creation, and its
\`metadata.name\` cannot change. A change of a template that comes from a file stays until the
file changes. A template whose \`fleet\` is \`copy\` can only be changed at the manager (409).`,
  deleteTemplate:
    'Refused while pools are made from it. A global template is also refused while pools ' +
    'of a connected cluster are made from it (`detail.pools`, as `west::shells`). A ' +
    'template that comes from a file returns at the next start, as long as the file exists.',
  createApiKey: `
A key of the caller's own team, user and role. The body may be empty. The key is shown only this
once (\`Cache-Control: no-store\`); the daemon stores only an HMAC of it. A user has at most 1,000
keys. A key expires no later than the key that created it. If \`keys.creation\` is \`admins\`, a
tenant's request gets 403.`,
  createApiKeyForTenant:
    'This is how tenants are added: a team and a user exist as soon as they have a key.',
  listApiKeys:
    'The keys themselves are never shown. Expired keys are listed until newer keys need ' +
    'their place.',
  deleteApiKey: `
The key stops working at once, even if it is the caller's own; on every daemon within a second.
Everything in progress under it ends: terminals with 4001; streams of logs and events, and
connections to endpoints; commands and waiting claims with 401. The same happens when a key
expires. With \`cascade\`, the keys that it created are revoked first, and before them the keys
that those created: at most 1,000 keys in one request, otherwise 503, and the same request
continues from there; so it does after a crash. For a key with the admin role, which may have
created keys for others, \`cascade\` needs an admin key.`,
  deleteApiKeysOf:
    'If no keys are left to revoke, `revoked` is 0; that is not an error. Keys that a ' +
    'manager promoted stay; revoke them there. `cascade` works as in `DELETE ' +
    '/api-keys/{keyId}`.',
  listAllApiKeys: 'The keys themselves are never shown.',
  deleteApiKeyByName:
    'The name is `{namespace}/{shortName}`, with `/` as `%2F`; or only the short name, in ' +
    "the caller's namespace.",
  listInstanceTypes:
    'The types in the file `instanceTypes.file`. With `instanceTypes.provider: none` there ' +
    'are none, and the gate `instanceType` is off.',
  listVolumes: `
Exactly the volumes that \`overrides.volumes\` may name. On one machine these are the existing
directories that \`volumes.directories\` gives the caller's namespace, on Kubernetes the Bound
persistent volume claims of the caller's namespace. There is deliberately no parameter: the key
determines the namespace. Empty if the gate \`volumes\` is off. At most 1,000.`,
  getFeatureGates: 'They do not change while the daemon runs.',
  listClusters: `
A daemon that manages no fleet knows only itself. Links, latency and route are those of the
manager's replica that answers; each replica has its own links. A cluster with a join token that
has never joined is shown with \`invitedUntil\`, until the token expires.`,
  getSandboxStatistics: `
Live sandboxes and instances by status, and as \`Completed\` the finished ones that are still
stored (\`history.retention\`). The counts are kept up to date, so the request is cheap. A manager
adds up those of all clusters.`,
  deleteApiKeyByFullName: 'The same key by the same name, without escaping.',
  promoteApiKey: `
Only at a manager, which sends the key to worker clusters over their links. After the answer the
key is valid at the addresses of all connected clusters; other clusters receive it when they
connect. At least one must be connected, and the key must not be global already. Revoking the key
at the manager revokes it everywhere. A worker's copy cannot create keys, and cannot be revoked
there (409 \`CONFLICT\`). While a worker reconnects to its manager, a promoted key gets 503 there
for a moment. The name is as in \`DELETE /admin/api-keys/{name}\`.`,
  promoteApiKeyByFullName: 'The same key by the same name, without escaping.',
};
