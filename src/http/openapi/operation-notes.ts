import { APPROVAL_NOTES } from './approval-notes.ts';
import { PROCESS_NOTES } from './process-notes.ts';

/** Says what each operation does and promises, by its operationId: for document and API page. */
export const OPERATION_NOTES: Readonly<Record<string, string>> = {
  getHealth: 'Answers as soon as the process takes requests. It looks at nothing.',
  getReadiness:
    'Answers 503 with the same body, and `Retry-After`, while sandboxes can be neither ' +
    'started nor reached.',
  getShards: `
Pools fall into 16 shards. What nobody's request asks for (filling pools, ending idle sandboxes)
is done by one replica a shard, the one that holds its lease. Any replica answers for all; a
daemon alone leads them all.`,
  listActors: `
Every replica hosts an actor for each sandbox, pool, env member and autoscaling group: a state
machine that mirrors what is durable and decides what is to be done. A page costs the same
however many there are. Actors that move while pages are read may be shown twice, or not. Without
\`kind\` all kinds are listed, one after the other. What has no actor, because that threw again
and again, stands in the state \`broken\`. A manager lists one cluster after the other, its own
first; a \`pool\` is one of its own, or one of another as \`west::default\`.`,
  getActor: `
Where it stands and why, what it waits for, how it came there, what it asked for and nobody
answered yet, and the durable record beside what it knows of it. It is shown as the replica sees
it that leads it, whichever answers; where that one says nothing within a second, as the
answering replica sees it, and \`seenBy.note\` says so. A manager shows those of other clusters
by their cluster's name: \`west.\` before the id of a sandbox or approval, \`west::\` before any
other.`,
  followActor: `
As the replica sees them that leads the actor, whichever answers: that one's own at once,
another's within half a second. \`seen-by\` says whose view follows (\`replica\`), first of all
and when another leads, and in \`note\` why it is not the leader's, or why nothing follows now.
Each replica counts for itself, so with another leader the numbers are others, and a move that
both saw may be told twice. \`reset\`: some in this place are missing. \`end\`: the actor is no
more. A stream that ends without it can be asked for again.`,
  getQueues:
    'Any replica answers for any other, which it asks; one that says nothing within a ' +
    'second is 503. So with the next two.',
  getDriver: 'On the embedded daemon bubblewrap and its spawner, on Kubernetes Pods.',
  getReflectors:
    'Each follows one kind of objects of the API server. A stale one makes the replica not ready.',
  rebuildActor: `
The actor is thrown away and made again of what is durable and of what runs. Nothing of the
sandbox, pool or env itself changes, and commands that are under way go on. What is \`broken\`
has an actor again. While an answer is awaited that the new actor would not know, it is 409.`,
  getMachine: '`?format=` or `Accept` ask for Mermaid instead of JSON.',
  listAudit: `
The last 5,000 lines of the [audit](observing.md#audit) of all replicas, by when they were
written; the files of each replica have more. A line shows about 50 ms after the answer that it
tells of. Of what a replica wrote while Redis was away it shows nothing: the numbers show the
gap. Ask for more by \`nextCursor\`. A manager shows one list over all clusters, the newest first by
their clocks; each line says its \`clusterID\`.`,
  ...APPROVAL_NOTES,
  listTemplateClusters: `
Each cluster that is connected is asked, within 2 s, at the [manager](fleet.md#global-templates).
Elsewhere, and of a template that is not global, there is nothing to list.`,
  getManagers: 'Addresses are those of the settings; links are those of the replica that answers.',
  setManagers: `
For a [worker](fleet.md#cutting-a-manager-off). With \`cutOff: true\` every replica ends its
links to all managers and opens none, within seconds; the one that answers has done so. What came
over them is cut, promoted keys are 401, global templates are the cluster's own. It stands in the
store, over restarts, until \`cutOff: false\`. It takes a key of the cluster itself: 403
\`FORBIDDEN\` over a link and with a promoted key. Where there is no manager it is 400.`,
  getLogLevel: 'Of several replicas each has its own.',
  setLogLevel: 'Of the one that answers. A restart has `logLevel` of the settings again.',
  claimSandbox: `
Takes the pool's longest idle instance and makes it the caller's. The claim is on disk before the
answer, so what was answered with 201 survives a kill -9 of the daemon. No other claim ever gets
the same instance. The sandbox is Running at once; nothing has to be waited for.

A caller claims from pools of their own alone; the pool is looked for in the caller's namespace.
With no idle instance the answer is 429 \`POOL_EXHAUSTED\`: \`Retry-After\` is 1 s while
instances are starting, else 5 s. After 5 s without a result the answer is 503, and the claim may
have landed: list your sandboxes before you repeat it.

\`env\` and \`metadata\` are written in the same step as the claim, and end with it. Variables are
sealed on disk; commands and terminals have them, the main process, which runs already, does not.
A repetition under an \`Idempotency-Key\` must have them alike.

\`files\` are written all at once before the answer, as \`PUT …/files\` with \`parents\` does. Where
one can't be, within 20 s, the claim is given back and the error names it in \`detail.field\`. A
repetition under an \`Idempotency-Key\` then claims anew. One that finds the claim of a request
without an answer writes them again; where that fails \`detail.sandboxId\` names the sandbox.

With \`waitTimeoutSeconds\` the claim waits for an instance, and then for as long as a claim may
take: first come first served, over all replicas. One that doesn't wait counts as last, and is
refused where those who wait take all. The quota is looked at when an instance is there. It ends
with 429 \`POOL_EXHAUSTED\` when its time is over, 409 when the pool is deleted meanwhile, 503
when the daemon stops (repeat it at once), and with the client's connection. At most 256 wait for
a pool, 512 of a tenant on one replica: 429 \`TOO_MANY_WAITING\`. Under an \`Idempotency-Key\` it
is in flight meanwhile.`,
  listSandboxes: `
The caller's sandboxes, newest claim first. Without \`phase\`: the claimed ones, and those that
finished within the last 24 hours (\`history.listWindow\`). With \`poolName\` the live ones of
the pool that has the name now, of all that had it where none has; finished ones of each that had
it. \`phase=Idle\` and \`phase=Starting\` show the unclaimed instances of the caller's pools.
\`metadata.job=42\`, or \`metadata[job]=42\`, shows the live ones whose claim says so; of several
pairs those that have all. Finished ones are not found by it: with \`phase=Completed\` it is 400.`,
  getSandbox:
    "One live sandbox, or an unclaimed instance of a pool of the caller's. A finished one " +
    'is 404; `GET /sandboxes?phase=Completed` shows it with `endReason`, and ' +
    '`GET /sandboxes/{sandboxId}/events` what happened to it. Admins see any.',
  isReady: `
Runs the [readiness probes](templates.md#readiness-probes) of the container and of each endpoint,
now, and answers 503 with the same body where one fails, without \`Retry-After\`. An endpoint is
ready where its own probe and the container's pass; without probes all is. \`message\` says why
not. A sandbox that is neither Running nor Idle is not ready. Is no activity.`,
  deleteSandbox: `
Ends the sandbox with all that runs and lies in it. When the answer comes it is on disk that the
sandbox ends; its processes are gone a few milliseconds later, and the pool starts another. Legal
in every state; repeating it is harmless until it is finished, then 404. An unclaimed instance of
a pool of the caller's is retired and replaced. Admins end any.`,
  execInSandbox: `
Runs one command and answers when it has ended. It runs as the sandbox's user, hardened like the
main process. What it left running in the background goes on. A client that goes away ends its
command. At most 64 at a time a sandbox. While a command runs the sandbox is not idle. In its
stead: \`POST /sandboxes/{sandboxId}/processes\`, which streams, and has no limit of time.`,
  ...PROCESS_NOTES,
  getSandboxLogs: `
What the main process printed, to its output and its errors. What another process printed is at
\`GET /sandboxes/{sandboxId}/processes/{processId}/output\`; \`GET …/processes\` lists them. A
finished sandbox's stays readable to its owner for as long as the sandbox is kept
(\`history.retention\`), bounded by \`logs.fileBytes\` and \`logs.totalBytes\`: then older lines
go first. An unclaimed instance's belongs to the pool's owner.

With \`Accept: text/plain\` the bytes come as they were printed. With \`follow\` the last lines
come first and then each line as it is printed, as events with JSON in \`data\`: \`line\`, with
\`timestamps\` \`timestamp\`, and \`partial\` where the line is not over yet. The event \`end\`
says that the sandbox has ended, \`reset\` that something before it is no longer kept. A client
that comes again with \`Last-Event-ID\` goes on where it was. Every 15 s without a line comes a
comment. A client that takes nothing for 30 s is cut. At most 16 follow one sandbox, 64 of one
tenant's.`,
  listSandboxEvents: `
From its creation to its end, and why it ended. A finished sandbox's stay readable to its owner
for as long as the sandbox is kept (\`history.retention\`). Admins see those of any.`,
  listPoolEvents: `
That it was created, changed, resized by hand, filled, and deleted, and what kept its instances
from starting, with the cause. What its autoscaling group decides stands in [the group's
decisions](#get-envsnameautoscalinggroupsgroupnamedecisions). A pool that goes on failing for the
same cause is told once. Kept for as long as there is a pool of that name, and for
\`history.retention\` after; of one owner those of the 100 pools that something happened to last.
Whoever may claim from a pool may read them, and of an earlier pool of that name its owner.
Admins see those of any.`,
  readFile: `
The bytes of a file, with \`ETag\`, \`Accept-Ranges\` and \`X-File-Mode\`; \`Range\`,
\`If-Range\`, \`If-None-Match\` and \`If-Match\` are heeded. Who reads has the file that was
opened, also when another takes its name meanwhile. With \`Accept: application/x-tar\` a folder
with all below it as an archive; with both types whichever is there, as \`Content-Type\` says.
What is cut off is no whole answer: the connection ends early. Devices, fifos and sockets are
never opened.`,
  writeFile: `
The body, of any length, takes the place of the file at once when all of it has come: a reader
sees the old file or the new one, and a body that is cut off changes nothing. \`If-Match\`
replaces only the version of that \`ETag\`; \`If-None-Match: *\` (412) and \`overwrite=false\`
(409) replace nothing. With \`Content-Type: application/x-tar\` the body is unpacked into the
folder \`path\`, which is made where it is missing; of an archive with a bad entry what came
before it stays. A refusal may come before all of the body was sent: read it, and stop sending.`,
  removeFile: 'A link is removed, and not what it leads to.',
  listFiles: `
Links are shown and not followed. In the order of the names' bytes; what is there all the while
is shown once, however many pages there are. Names that are not UTF-8 are base64, and say so.`,
  moveFile: 'Within one file system. Without `overwrite` 409 where something is there.',
  makeFolder: '201 where it was made; with `parents` 200 where it was there.',
  watchFiles: `
From now on, as long as the folder is there. A file that is renamed is \`removed\` and
\`created\`. It does not keep the sandbox from being idle.`,
  followEvents: `
Server-Sent Events of the caller's own sandboxes, unclaimed instances and pools, from now on;
each message's \`data\` is one event as below. A client that comes again with \`Last-Event-ID\`
gets what it missed. Where that is no longer known (the last 8,192 are kept, over a restart where
several daemons share them) it first gets one event \`reset\`: then look at the lists anew. Every
15 s without an event comes a comment. A client that takes nothing for 30 s is cut. At most 16
streams of one tenant.

A manager tells of all clusters in one stream, each cluster's in their order. Its ids hold a place
in each. An event \`cluster\` with \`{"clusterID", "incomplete"}\` says that one is not heard, or is
again: then it goes on where it was. \`reset\` has a \`clusterID\` where it is about one.`,
  createExecToken:
    'The token opens one [terminal](#terminal) in this sandbox, within 30 seconds. The ' +
    'answer is not to be cached (`Cache-Control: no-store`).',
  setSandboxState: `
A paused sandbox is Running with \`paused: true\`: nothing of it runs. Its memory and its seat in
the quota are kept, also across restarts of the daemon. Its idle timeout stands still, and begins
anew when it goes on; its longest lifetime does not, and DELETE ends it as any other. Commands that
were under way stand still too, while their time runs on.

What needs it running (a command, a terminal, an endpoint) has it go on where its claim had
\`autoResume\`, and is 409 \`SANDBOX_NOT_RUNNING\` with a hint else. Where nothing can be paused,
such as on Kubernetes, it is 501 \`FEATURE_DISABLED\`, and the gate \`pause\` is false.`,
  setIdleTimeout: `
Needs one of the two fields, not both. It counts as activity, so the time begins anew. Activity
is also: a command under way, and bytes of a terminal either way. After a restart of the daemon
every sandbox counts as just used.`,
  createPool: `
The pool belongs to the caller, and its instances begin to start at once. Its name is unique in
the namespace. What instances are started from is a template, by name or inline (\`template\`),
or \`overrides.image\` alone; its first container gets the size that is asked for. What is more
particular counts: \`cpu\` and \`memory\`, \`inlineResources\`, \`instanceType\` times
\`multiplier\`, the template. A change of the template reaches the pool by itself, unless
\`updateStrategy.autoUpdate\` is false. Registry passwords are kept apart, and never answered.
With \`clusterID\` a manager makes it on that cluster of its [fleet](fleet.md), as its answer names
it: \`west::big\`.`,
  listPools: "The caller's pools.",
  getPool: 'Admins see, change and delete any pool of their own namespace by its name.',
  updatePool: `
With fewer replicas, surplus instances are retired, unclaimed ones alone: those still starting
first, then the longest idle. Running sandboxes are never touched. What is not named stays,
within \`overrides\` and \`updateStrategy\` too; a list, labels and annotations are replaced
whole; \`templateName\` and \`template\` take each other's place. Null unsets a field, so that
the template's counts again, or what is usual: all but \`replicas\`, \`templateName\` and
\`template\`. What changes what instances are started from makes a new revision; without
\`autoUpdate\` it waits for sync-template. An empty body changes nothing.`,
  syncPool:
    "Takes over its template and its owner's wishes as they are now, also without " +
    '`autoUpdate`. Its replicas stay. Not needed: changes of templates reach pools by ' +
    'themselves, and PUT says the rest.',
  previewPoolSync:
    "Writes nothing. The YAML has the template with the pool's size and overrides; after " +
    'a sync instances are started from exactly this.',
  deletePool:
    'No claim succeeds any more (409), unclaimed instances go, and then the pool. Running ' +
    'sandboxes live on to their own end. Repeating it is harmless; `force` may be added ' +
    'later. The pool of a member is its env’s: 409, and `detail` names both.',
  createEnv: `
An env links a template, what differs from it (\`overrides\`), and members, each of them a pool.
This makes it without members. With \`templateRef.version\` it stays at that version of the
template, else it follows it. See [envs](envs.md). A user has at most 1,000.`,
  listEnvs: "The caller's envs.",
  getEnv: 'Admins see, change and delete any env of their own namespace by its name.',
  replaceEnv: `
Takes the place of \`templateRef\`, \`overrides\`, \`labels\` and \`annotations\`: what is left
out is gone, registry passwords excepted, which stay until others come. \`name\` and \`mode\`
must be what they are. Members follow by themselves, within their \`updateStrategy\`.`,
  patchEnv: `
A JSON merge patch (RFC 7396): \`null\` removes, objects merge, lists are replaced whole. The
body may also be \`application/merge-patch+json\`. It reaches the members by itself, within their
\`updateStrategy\`; running sandboxes are never touched.`,
  deleteEnv:
    'Its members go, and then the env. Refused while sandboxes of it run, unless `force`, ' +
    'which ends them. Repeating it is harmless.',
  syncEnv: `
Renders every member anew from the template and the env's overrides as they are now, also without
\`autoUpdate\`. Their replicas stay. Each member is for itself: where some fail the others stay
synced, and the answer is \`ENV_SYNC_PARTIAL\`.`,
  addMember: `
Makes a pool of the member's name and an autoscaling group of that name too, enabled, with the
member's bounds (0 and its replicas where unset); with \`scalingGroup\` it joins that group
instead. The pool is the env's: it is changed here, and \`PUT /sandboxpools/{name}\` takes
nothing but \`replicas\`, and those only while autoscaling is off. At most 64 members an env.`,
  listMembers: 'As `GET /sandboxpools/{name}` shows each.',
  updateMember:
    'What changes what instances are started from is rolled out as a change of any pool. ' +
    'An empty body changes nothing.',
  deleteMember: `
No claim succeeds any more (409), unclaimed instances go, then the pool, then the member, and its
group where nobody else is in it. Running sandboxes live on to their own end, unless \`force\`.
Repeating it is harmless until it is gone, then 404.`,
  listGroups: 'A group sizes the members that name it as their `scalingGroup`.',
  getGroup: 'As it stands now.',
  listDecisions: `
The last 100: what was seen, wanted and done, and why not more. A group that has all that it
should decides nothing. They are kept for as long as their env, or through retention.`,
  updateGroup: 'Within the policies too what is not named stays. An empty body changes nothing.',
  deleteGroup: "Nothing sizes its members any more: their pools' `replicas` are their owner's.",
  getQuotas: `
Of all the caller's keys together, and over all their pools; at a manager the sums over all
clusters, each of which keeps its own, and of one by \`clusterID\`. What is used is exact, and 503
where it can't be told for a moment: the counting is then begun anew. A limit that is reached is
429 \`QUOTA_EXCEEDED\` for what would pass it. \`cpu\` and \`memory\` are what each instance may
have, times the replicas that its pool asks for; they are told where there is a limit of them.`,
  getQuotasOf:
    'A user without limits of their own has the configured ones (`quotas.*`), whether or ' +
    'not they have a key yet.',
  setQuotasOf: `
Every daemon goes by it within a moment. A limit below what is used ends nothing that is there,
and grants nothing more until enough is given back. An empty body changes nothing. A template's
new version that would give a pool's instances more \`cpu\` or \`memory\` than is left is not
rolled out: the pool says \`QuotaExceeded\` and is tried again each minute.`,
  listTemplates: 'Templates belong to the deployment: every tenant sees all of them.',
  getTemplate:
    'As it stands now. A pool shows which version its instances are started from ' +
    '(`templateVersion`).',
  createTemplate: `
\`crdJson\` is the document of [templates](templates.md) as text. An unknown field is refused by
its path (\`crdJson.spec.containers[0].imagePull\`), and so is what this daemon can't run.
Refused for safety are \`privileged\`, \`allowPrivilegeEscalation\`, added capabilities,
\`procMount\`, \`hostPath\`, \`hostPort\`, \`hostNetwork\`, \`hostPID\`, \`hostIPC\`, service
accounts, and \`..\` in a path. A fleet's manager answers a template with \`syncSource\` once the
clusters that are connected have it, or after 5 s.`,
  updateTemplate: `
Makes a new version, unless nothing changes; an empty body changes nothing. The last 20 versions
are kept (of templates larger than some 13 KiB fewer). Pools that are made from it follow by
themselves; running sandboxes are never touched. A \`crdJson\` is checked as when a template is
made, and its \`metadata.name\` can't change. Of a template of a file a change stays until the
file changes; one whose \`fleet\` is \`copy\` is changed at the manager alone (409).`,
  deleteTemplate:
    'Refused while pools are made from it; one for all clusters of a fleet also while pools of a ' +
    'cluster that is connected are (`detail.pools`, as `west::shells`). One of a file comes back ' +
    'at the next start, as long as its file is there.',
  createApiKey: `
A key of the caller's own team, user and role. The body may be empty. The key is shown this once
(\`Cache-Control: no-store\`); the daemon keeps no more than an HMAC of it. A user has at most
1,000 keys. A key ends with the key that made it at the latest. Where \`keys.creation\` is
\`admins\`, a tenant's request is 403.`,
  createApiKeyForTenant:
    'This is how further tenants come to be: a team and a user exist as soon as they have a key.',
  listApiKeys: 'Never with the keys themselves. Expired ones show until they make room for others.',
  deleteApiKey: `
It is worth nothing from then on, also where it is the one that asks; on every daemon within a
second. What goes on under it ends: terminals with 4001, streams of logs and events, what is open
to endpoints; commands and claims that wait with 401. So it is with a key that expires. With
\`cascade\` what the key made goes before it, and what that made before that: at most 1,000 keys
in one request, else 503, and the same request goes on where it was; so it does after a crash.
For a key with the admin role, which may have made keys for others, that takes such a key.`,
  deleteApiKeysOf:
    'None that is left to be revoked is no fault: `revoked` is 0. What a manager promoted ' +
    'stays, and is revoked there. With `cascade` as in `DELETE /api-keys/{keyId}`.',
  listAllApiKeys: 'Never with the keys themselves.',
  deleteApiKeyByName:
    'The name is `{namespace}/{shortName}`, its `/` as `%2F`; or the short name alone, of ' +
    "the caller's namespace.",
  listInstanceTypes:
    'Those of the file `instanceTypes.file`; none with `instanceTypes.provider: none`, ' +
    'and the gate `instanceType` is off.',
  listVolumes: `
Exactly those that \`overrides.volumes\` may name: on one machine the directories that
\`volumes.directories\` gives the caller's namespace and that are there, on Kubernetes the Bound
persistent volume claims of the caller's namespace. There is deliberately no parameter: the key
says which namespace it is. Empty where the gate \`volumes\` is off. At most 1,000.`,
  getFeatureGates: 'They do not change while the daemon runs.',
  listClusters: `
A daemon that manages no fleet knows itself alone. Links, latency and route are what the replica of
the manager that answers sees: each has links of its own. One that a join token was made for and
that has never joined is shown with \`invitedUntil\`, until the token ends.`,
  getSandboxStatistics: `
Live sandboxes and instances by their status, and as \`Completed\` those finished that are still
kept (\`history.retention\`). Counts that are kept as things happen: nothing is searched. A manager
adds up those of all clusters.`,
  deleteApiKeyByFullName: 'The same key by the same name, without an escape.',
  promoteApiKey: `
At a manager: worker clusters are told over their links, and once it is answered the key is good
at the own addresses of all that are connected; others learn of it when they are. At least one
must be connected, and the key must not be global already. Revoked at the manager it is revoked
everywhere. A worker's copy makes no keys, and can't be revoked there (409 \`CONFLICT\`); while a
worker comes back to its manager, a promoted key is 503 there for a moment.
The name is as in \`DELETE /admin/api-keys/{name}\`.`,
  promoteApiKeyByFullName: 'The same key by the same name, without an escape.',
};
