import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { rememberChild } from '../../../local-cluster/started-processes.ts';
import { NEVER_COMES_MS } from '../harness/eventually.ts';

/** A running provider: see provider-process.ts. */
export interface RunningProvider {
  readonly issuer: string;
  /** Names its one client's address; resolves once people can log in. */
  serve(redirectUri: string): Promise<void>;
  stop(): Promise<void>;
}

export const aProvider = async (): Promise<RunningProvider> => {
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', fileURLToPath(new URL('provider-process.ts', import.meta.url))],
    { stdio: ['pipe', 'pipe', 'pipe'] },
  );
  rememberChild('OpenID provider', child);
  const lines = createInterface({ input: child.stdout });
  const nextLine = async (): Promise<string> => {
    const [line] = (await once(lines, 'line', { signal: AbortSignal.timeout(NEVER_COMES_MS) })) as [
      string,
    ];
    return line;
  };
  const port = await nextLine();
  return {
    issuer: `http://localhost:${port}`,
    serve: async (redirectUri) => {
      child.stdin.write(`${redirectUri}\n`);
      await nextLine();
    },
    stop: async () => {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
};
