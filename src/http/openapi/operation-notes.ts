/** What each operation does and promises, by its operationId: for the document and the API page. */
export const OPERATION_NOTES: Readonly<Record<string, string>> = {
  getHealth: 'Answers as soon as the process takes requests. It looks at nothing.',
  getReadiness: 'Answers 503 with the same body, and `Retry-After`, while sandboxes can be neither started nor reached.',
  getShards: `
Pools fall into 16 shards. What nobody's request asks for (filling pools, ending idle sandboxes) is done by one replica a shard,
the one that holds its lease. Any replica answers for all; a daemon alone leads them all.`,
  claimSandbox: `
Takes the pool's longest idle instance and makes it the caller's. The claim is on disk before the answer, so what was
answered with 201 survives a kill -9 of the daemon. No other claim ever gets the same instance. The sandbox is Running at
once; nothing has to be waited for.

A caller claims from pools of their own alone; the pool is looked for in the caller's namespace. With no idle instance the
answer is 429 \`POOL_EXHAUSTED\`: \`Retry-After\` is 1 s while instances are starting, else 5 s. Claims do not wait. After 5 s
without a result the answer is 503, and the claim may have landed: list your sandboxes before you repeat it.`,
  listSandboxes: `
The caller's sandboxes, newest claim first. Without \`phase\`: the claimed ones, and those that finished within the last 24
hours (\`history.listWindow\`). \`phase=Idle\` and \`phase=Starting\` show the unclaimed instances of the caller's pools.`,
  getSandbox: 'One live sandbox, or an unclaimed instance of a pool of the caller\'s. A finished one is 404; the list shows it. Admins see any.',
  isReady: `
Runs the [readiness probes](templates.md#readiness-probes) of the container and of each endpoint, now, and answers 503 with the
same body where one fails, without \`Retry-After\`. An endpoint is ready where its own probe and the container's pass; without
probes all is. \`message\` says why not. A sandbox that is neither Running nor Idle is not ready. Is no activity.`,
  deleteSandbox: `
Ends the sandbox with all that runs and lies in it. When the answer comes it is on disk that the sandbox ends; its
processes are gone a few milliseconds later, and the pool starts another. Legal in every state; repeating it is harmless
until it is finished, then 404. An unclaimed instance of a pool of the caller's is retired and replaced. Admins end any.`,
  execInSandbox: `
Runs one command and answers when it has ended. It runs as the sandbox's user, hardened like the main process. What it
left running in the background goes on. A client that goes away ends its command. At most 64 at a time a sandbox. While a
command runs the sandbox is not idle.`,
  getSandboxLogs: `
What the main process printed, to its output and its errors; commands and terminals have their own. A finished sandbox's
stays readable to its owner for as long as the sandbox is kept (\`history.retention\`), bounded by \`logs.fileBytes\` and
\`logs.totalBytes\`: then older lines go first. An unclaimed instance's belongs to the pool's owner.

With \`Accept: text/plain\` the bytes come as they were printed. With \`follow\` the last lines come first and then each line
as it is printed, as events with JSON in \`data\`: \`line\`, with \`timestamps\` \`timestamp\`, and \`partial\` where the line is
not over yet. The event \`end\` says that the sandbox has ended, \`reset\` that something before it is no longer kept. A client
that comes again with \`Last-Event-ID\` goes on where it was. Every 15 s without a line comes a comment. A client that takes
nothing for 30 s is cut. At most 16 follow one sandbox, 64 of one tenant's.`,
  listSandboxEvents: `
From its creation to its end, and why it ended. A finished sandbox's stay readable to its owner for as long as the sandbox is
kept (\`history.retention\`). Admins see those of any.`,
  followEvents: `
Server-Sent Events of the caller's own sandboxes, unclaimed instances and pools, from now on; each message's \`data\` is one
event as below. A client that comes again with \`Last-Event-ID\` gets what it missed. Where that is no longer known (the
last 8,192 are kept, over a restart where several daemons share them) it first gets one event \`reset\`: then look at the lists anew.
Every 15 s without an event comes a comment. A client that takes nothing for 30 s is cut. At most 16 streams of one tenant.`,
  createExecToken: 'The token opens one [terminal](#terminal) in this sandbox, within 30 seconds. The answer is not to be cached (`Cache-Control: no-store`).',
  setIdleTimeout: `
Needs one of the two fields, not both. It counts as activity, so the time begins anew. Activity is also: a command under
way, and bytes of a terminal either way. After a restart of the daemon every sandbox counts as just used.`,
  createPool: 'The pool belongs to the caller, and its instances begin to start at once. Its name is unique in the namespace. It keeps the template as it is now: later changes of the template do not reach it.',
  listPools: 'The caller\'s pools.',
  getPool: 'Admins see, change and delete any pool of their own namespace by its name.',
  updatePool: 'With fewer replicas, surplus instances are retired, unclaimed ones alone: those still starting first, then the longest idle. Running sandboxes are never touched. An empty body changes nothing.',
  deletePool: 'No claim succeeds any more (409), unclaimed instances go, and then the pool. Running sandboxes live on to their own end. Repeating it is harmless; `force` may be added later.',
  createApiKey: `
A key of the caller's own team, user and role. The body may be empty. The key is shown this once
(\`Cache-Control: no-store\`); the daemon keeps no more than an HMAC of it. A user has at most 1,000 keys.`,
  createApiKeyForTenant: 'This is how further tenants come to be: a team and a user exist as soon as they have a key.',
  listApiKeys: 'Never with the keys themselves. Expired ones show until they make room for others.',
  deleteApiKey: 'It is worth nothing from then on, also where it is the one that asks. Terminals that are open stay open.',
  listAllApiKeys: 'Never with the keys themselves.',
  deleteApiKeyByName: 'The name is `{namespace}/{shortName}`, its `/` as `%2F`; or the short name alone, of the caller\'s namespace.',
  deleteApiKeyByFullName: 'The same key by the same name, without an escape.',
};
