/** Written by script/api-examples.ts from the answers of a real daemon to the lines of docs/api-by-example.md. */
export interface OperationExample {
  readonly request?: unknown;
  readonly status: number;
  readonly answer: unknown;
}

export const EXAMPLES: Readonly<Record<string, OperationExample>> = {
  getHealth: {"status":200,"answer":{"status":"ok"}},
  getReadiness: {"status":200,"answer":{"status":"ready","problems":[],"warnings":[],"isolation":"cgroup-v1"}},
  claimSandbox: {"request":{"poolName":"default"},"status":201,"answer":{"sandbox":{"sandboxId":"01a1fd6e-5580-75a4-83f4-b09a01d7f23b","namespace":"default","poolName":"default","podName":"sb-01a1fd6e-5580-75a4-83f4-b09a01d7f23b","status":"Running","claimedAt":"2026-11-21T09:27:09.126Z","team":"default","user":"default"}}},
  getSandbox: {"status":200,"answer":{"sandbox":{"sandboxId":"01a1fd6e-5580-75a4-83f4-b09a01d7f23b","namespace":"default","poolName":"default","podName":"sb-01a1fd6e-5580-75a4-83f4-b09a01d7f23b","status":"Running","claimedAt":"2026-11-21T09:27:09.126Z","team":"default","user":"default","endpoints":{}}}},
  listSandboxes: {"status":200,"answer":{"items":[{"sandboxId":"01a1fd6e-5580-75a4-83f4-b09a01d7f23b","namespace":"default","poolName":"default","podName":"sb-01a1fd6e-5580-75a4-83f4-b09a01d7f23b","status":"Running","claimedAt":"2026-11-21T09:27:09.126Z","team":"default","user":"default","startedAt":"2026-11-21T09:27:08.965Z","durationSeconds":0,"cpu":"1","memory":"256Mi","containerImages":{"main":"host"}}],"total":1,"limit":5,"offset":0}},
  execInSandbox: {"request":{"command":"echo hello; exit 3"},"status":200,"answer":{"stdout":"hello\n","stderr":"","exitCode":3,"timedOut":false,"truncated":false,"durationMs":5}},
  createExecToken: {"status":200,"answer":{"token":"<TOKEN>"}},
  setIdleTimeout: {"request":{"idleTimeout":"2h"},"status":200,"answer":{"sandbox":{"sandboxId":"01a1fd6e-5580-75a4-83f4-b09a01d7f23b","namespace":"default","poolName":"default","podName":"sb-01a1fd6e-5580-75a4-83f4-b09a01d7f23b","status":"Running","claimedAt":"2026-11-21T09:27:09.126Z","team":"default","user":"default","idleTimeout":"2h","idleExpiresAt":"2026-11-21T11:27:09.250Z"}}},
  deleteSandbox: {"status":200,"answer":{"sandboxId":"01a1fd6e-5580-75a4-83f4-b09a01d7f23b","namespace":"default","poolName":"default","podName":"sb-01a1fd6e-5580-75a4-83f4-b09a01d7f23b","status":"Stopping"}},
  createPool: {"request":{"name":"spare","templateName":"default","replicas":1,"labels":{"for":"tests"}},"status":201,"answer":{"template":{"name":"spare","namespace":"default","cpu":"1","memory":"256Mi","team":"default","user":"default","templateVersion":"1","createdAt":"2026-11-21T09:27:09.311Z","labels":{"for":"tests"},"annotations":{"sandpool.dev/template-name":"default"},"spec":{"replicas":1},"status":{"phase":"Pending","idleReplicas":0,"unavailableIdleReplicas":0,"runningReplicas":0,"startingReplicas":1,"stoppingReplicas":0,"failedReplicas":0}}}},
  getPool: {"status":200,"answer":{"template":{"name":"spare","namespace":"default","cpu":"1","memory":"256Mi","team":"default","user":"default","templateVersion":"1","createdAt":"2026-11-21T09:27:09.311Z","labels":{"for":"tests"},"annotations":{"sandpool.dev/template-name":"default"},"spec":{"replicas":1},"status":{"phase":"Pending","idleReplicas":0,"unavailableIdleReplicas":0,"runningReplicas":0,"startingReplicas":1,"stoppingReplicas":0,"failedReplicas":0}}}},
  updatePool: {"request":{"replicas":2},"status":200,"answer":{"template":{"name":"spare","namespace":"default","cpu":"1","memory":"256Mi","team":"default","user":"default","templateVersion":"1","createdAt":"2026-11-21T09:27:09.311Z","labels":{"for":"tests"},"annotations":{"sandpool.dev/template-name":"default"},"spec":{"replicas":2},"status":{"phase":"Pending","idleReplicas":0,"unavailableIdleReplicas":0,"runningReplicas":0,"startingReplicas":2,"stoppingReplicas":0,"failedReplicas":0}}}},
  listPools: {"status":200,"answer":{"items":[{"name":"spare","namespace":"default","cpu":"1","memory":"256Mi","team":"default","user":"default","templateVersion":"1","createdAt":"2026-11-21T09:27:09.311Z","labels":{"for":"tests"},"annotations":{"sandpool.dev/template-name":"default"},"spec":{"replicas":2},"status":{"phase":"Pending","idleReplicas":1,"unavailableIdleReplicas":0,"runningReplicas":0,"startingReplicas":1,"stoppingReplicas":0,"failedReplicas":0}}],"total":2,"limit":1,"offset":0}},
  deletePool: {"status":200,"answer":{"name":"spare","namespace":"default","status":"Deleting"}},
  createApiKey: {"request":{"name":"ci","description":"for the build"},"status":201,"answer":{"apiKey":"<API_KEY>","keyId":"8jQXPGq5aTsuTYWx","name":"default/ci","user":"default","team":"default","role":"user","description":"for the build","issuedAt":"2026-11-21T09:27:09.458Z","expiresAt":"2027-02-19T09:27:09.458Z"}},
  listApiKeys: {"status":200,"answer":{"items":[{"keyId":"8jQXPGq5aTsuTYWx","name":"default/ci","user":"default","team":"default","role":"user","description":"for the build","issuedAt":"2026-11-21T09:27:09.458Z","expiresAt":"2027-02-19T09:27:09.458Z"}],"total":3,"limit":1,"offset":0}},
  deleteApiKey: {"status":200,"answer":{"keyId":"8jQXPGq5aTsuTYWx","status":"deleted"}},
  createApiKeyForTenant: {"request":{"team":"blue","user":"ada","name":"laptop"},"status":201,"answer":{"apiKey":"<API_KEY>","keyId":"vBJ03sjWaJ9DmHvN","name":"blue/laptop","user":"ada","team":"blue","role":"user","description":"","issuedAt":"2026-11-21T09:27:09.519Z","expiresAt":"2027-02-19T09:27:09.519Z"}},
  listAllApiKeys: {"status":200,"answer":{"items":[{"keyId":"osU746qC2OXYiW8m","name":"blue/phone","user":"ada","team":"blue","role":"user","description":"","issuedAt":"2026-11-21T09:27:09.535Z","expiresAt":"2027-02-19T09:27:09.535Z"}],"total":4,"limit":1,"offset":0}},
  deleteApiKeyByName: {"status":200,"answer":{"keyId":"osU746qC2OXYiW8m","status":"deleted"}},
  deleteApiKeyByFullName: {"status":200,"answer":{"keyId":"vBJ03sjWaJ9DmHvN","status":"deleted"}},
};
