/** Written by script/api-examples.ts from the answers of a real daemon to the lines of docs/api-by-example.md. */
export interface OperationExample {
  readonly request?: unknown;
  readonly status: number;
  readonly answer: unknown;
}

export const EXAMPLES: Readonly<Record<string, OperationExample>> = {
  getHealth: {"status":200,"answer":{"status":"ok"}},
  getReadiness: {"status":200,"answer":{"status":"ready","problems":[],"warnings":[],"isolation":"cgroup-v1"}},
  claimSandbox: {"request":{"poolName":"default"},"status":201,"answer":{"sandbox":{"sandboxId":"01a1fd70-af7e-7547-bff1-6c87e5206c9b","namespace":"default","poolName":"default","podName":"sb-01a1fd70-af7e-7547-bff1-6c87e5206c9b","status":"Running","claimedAt":"2026-11-21T09:29:43.632Z","team":"default","user":"default"}}},
  getSandbox: {"status":200,"answer":{"sandbox":{"sandboxId":"01a1fd70-af7e-7547-bff1-6c87e5206c9b","namespace":"default","poolName":"default","podName":"sb-01a1fd70-af7e-7547-bff1-6c87e5206c9b","status":"Running","claimedAt":"2026-11-21T09:29:43.632Z","team":"default","user":"default","endpoints":{}}}},
  listSandboxes: {"status":200,"answer":{"items":[{"sandboxId":"01a1fd70-af7e-7547-bff1-6c87e5206c9b","namespace":"default","poolName":"default","podName":"sb-01a1fd70-af7e-7547-bff1-6c87e5206c9b","status":"Running","claimedAt":"2026-11-21T09:29:43.632Z","team":"default","user":"default","startedAt":"2026-11-21T09:29:43.172Z","durationSeconds":0,"cpu":"1","memory":"256Mi","containerImages":{"main":"host"}}],"total":1,"limit":5,"offset":0}},
  execInSandbox: {"request":{"command":"echo hello; exit 3"},"status":200,"answer":{"stdout":"hello\n","stderr":"","exitCode":3,"timedOut":false,"truncated":false,"durationMs":13}},
  getSandboxLogs: {"status":200,"answer":{"sandboxId":"01a1fd70-af7e-7547-bff1-6c87e5206c9b","podName":"sb-01a1fd70-af7e-7547-bff1-6c87e5206c9b","container":"main","logs":"","truncated":false}},
  createExecToken: {"status":200,"answer":{"token":"<TOKEN>"}},
  setIdleTimeout: {"request":{"idleTimeout":"2h"},"status":200,"answer":{"sandbox":{"sandboxId":"01a1fd70-af7e-7547-bff1-6c87e5206c9b","namespace":"default","poolName":"default","podName":"sb-01a1fd70-af7e-7547-bff1-6c87e5206c9b","status":"Running","claimedAt":"2026-11-21T09:29:43.632Z","team":"default","user":"default","idleTimeout":"2h","idleExpiresAt":"2026-11-21T11:29:43.884Z"}}},
  deleteSandbox: {"status":200,"answer":{"sandboxId":"01a1fd70-af7e-7547-bff1-6c87e5206c9b","namespace":"default","poolName":"default","podName":"sb-01a1fd70-af7e-7547-bff1-6c87e5206c9b","status":"Stopping"}},
  createPool: {"request":{"name":"spare","templateName":"default","replicas":1,"labels":{"for":"tests"}},"status":201,"answer":{"template":{"name":"spare","namespace":"default","cpu":"1","memory":"256Mi","team":"default","user":"default","templateVersion":"1","createdAt":"2026-11-21T09:29:43.989Z","labels":{"for":"tests"},"annotations":{"sandpool.dev/template-name":"default"},"spec":{"replicas":1},"status":{"phase":"Pending","idleReplicas":0,"unavailableIdleReplicas":0,"runningReplicas":0,"startingReplicas":1,"stoppingReplicas":0,"failedReplicas":0}}}},
  getPool: {"status":200,"answer":{"template":{"name":"spare","namespace":"default","cpu":"1","memory":"256Mi","team":"default","user":"default","templateVersion":"1","createdAt":"2026-11-21T09:29:43.989Z","labels":{"for":"tests"},"annotations":{"sandpool.dev/template-name":"default"},"spec":{"replicas":1},"status":{"phase":"Pending","idleReplicas":0,"unavailableIdleReplicas":0,"runningReplicas":0,"startingReplicas":1,"stoppingReplicas":0,"failedReplicas":0}}}},
  updatePool: {"request":{"replicas":2},"status":200,"answer":{"template":{"name":"spare","namespace":"default","cpu":"1","memory":"256Mi","team":"default","user":"default","templateVersion":"1","createdAt":"2026-11-21T09:29:43.989Z","labels":{"for":"tests"},"annotations":{"sandpool.dev/template-name":"default"},"spec":{"replicas":2},"status":{"phase":"Pending","idleReplicas":0,"unavailableIdleReplicas":0,"runningReplicas":0,"startingReplicas":2,"stoppingReplicas":0,"failedReplicas":0}}}},
  listPools: {"status":200,"answer":{"items":[{"name":"spare","namespace":"default","cpu":"1","memory":"256Mi","team":"default","user":"default","templateVersion":"1","createdAt":"2026-11-21T09:29:43.989Z","labels":{"for":"tests"},"annotations":{"sandpool.dev/template-name":"default"},"spec":{"replicas":2},"status":{"phase":"Pending","idleReplicas":1,"unavailableIdleReplicas":0,"runningReplicas":0,"startingReplicas":1,"stoppingReplicas":0,"failedReplicas":0}}],"total":2,"limit":1,"offset":0}},
  deletePool: {"status":200,"answer":{"name":"spare","namespace":"default","status":"Deleting"}},
  createApiKey: {"request":{"name":"ci","description":"for the build"},"status":201,"answer":{"apiKey":"<API_KEY>","keyId":"3ANh1br34lhs6NsT","name":"default/ci","user":"default","team":"default","role":"user","description":"for the build","issuedAt":"2026-11-21T09:29:44.052Z","expiresAt":"2027-02-19T09:29:44.052Z"}},
  listApiKeys: {"status":200,"answer":{"items":[{"keyId":"3ANh1br34lhs6NsT","name":"default/ci","user":"default","team":"default","role":"user","description":"for the build","issuedAt":"2026-11-21T09:29:44.052Z","expiresAt":"2027-02-19T09:29:44.052Z"}],"total":3,"limit":1,"offset":0}},
  deleteApiKey: {"status":200,"answer":{"keyId":"3ANh1br34lhs6NsT","status":"deleted"}},
  createApiKeyForTenant: {"request":{"team":"blue","user":"ada","name":"laptop"},"status":201,"answer":{"apiKey":"<API_KEY>","keyId":"hLju4VuTpdOlaec1","name":"blue/laptop","user":"ada","team":"blue","role":"user","description":"","issuedAt":"2026-11-21T09:29:44.103Z","expiresAt":"2027-02-19T09:29:44.103Z"}},
  listAllApiKeys: {"status":200,"answer":{"items":[{"keyId":"qOb0dzMlU65txmC1","name":"blue/phone","user":"ada","team":"blue","role":"user","description":"","issuedAt":"2026-11-21T09:29:44.113Z","expiresAt":"2027-02-19T09:29:44.113Z"}],"total":4,"limit":1,"offset":0}},
  deleteApiKeyByName: {"status":200,"answer":{"keyId":"qOb0dzMlU65txmC1","status":"deleted"}},
  deleteApiKeyByFullName: {"status":200,"answer":{"keyId":"hLju4VuTpdOlaec1","status":"deleted"}},
};
