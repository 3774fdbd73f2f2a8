/** By operationId, the least of a query without which the operation is refused. */
export const LEAST_QUERIES: Readonly<Record<string, string>> = Object.fromEntries(
  ['readFile', 'writeFile', 'removeFile', 'listFiles', 'watchFiles'].map((id) => [
    id,
    '?path=%2Ftmp',
  ]),
);

/** By operationId, the least body. */
export const LEAST_BODIES: Readonly<Record<string, object>> = {
  moveFile: { from: '/tmp/a', to: '/tmp/b' },
  makeFolder: { path: '/tmp/folder' },
  execInSandbox: { command: 'true' },
  startProcess: { command: 'true' },
  writeToProcess: { data: 'x' },
  signalProcess: { signal: 'TERM' },
  resizeProcess: { cols: 80, rows: 24 },
  setIdleTimeout: { idleTimeout: '5m' },
  setSandboxState: { state: 'running' },
};
