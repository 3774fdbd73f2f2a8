import './names-lead-here.mts';
import type { SdkOptions } from './a-sdk.ts';

/**
 * Goes through the steps of the suites as a program does that knows E2B_DOMAIN and E2B_API_KEY
 * alone, and prints a line of JSON for each: of which package, which step, and why it failed where
 * it did. The argument says which: `services` or `interpreter`.
 */
const told = (of: string, step: string, why: Error | null): void =>
  console.log(JSON.stringify({ of, step, why: why && String(why) }));
const tried = async (of: string, step: string, go: () => Promise<void>): Promise<void> =>
  told(
    of,
    step,
    await go().then(
      () => null,
      (error: unknown) => (error instanceof Error ? error : new Error(JSON.stringify(error))),
    ),
  );

/** Its proxy is no name of the domain. */
const BY_URLS_ALONE = 'says that a silent command is alive';

/** With the newest version. */
const services = async (): Promise<void> => {
  const { SDKS } = await import('./a-sdk.ts');
  const { SERVICE_STEPS } = await import('./service-steps.ts');
  const [version, Sandbox] = [...SDKS].at(-1)!; // there are four
  const options = {} as SdkOptions; // what it needs is in the environment
  const envs = { OF_CLAIM: 'claim' };
  const sandbox = await Sandbox.create('base', { ...options, timeoutMs: 600_000, envs });
  for (const [title, step] of Object.entries(SERVICE_STEPS))
    if (title !== BY_URLS_ALONE)
      await tried(version, title, () => step({ Sandbox, options, sandbox }));
  await sandbox.kill();
};

const interpreter = async (): Promise<void> => {
  const { Sandbox } = await import('@e2b/code-interpreter');
  const { INTERPRETER_STEPS } = await import('./interpreter-steps.ts');
  const sandbox = await Sandbox.create({ envs: { OF_CLAIM: 'claim' } });
  for (const [title, step] of Object.entries(INTERPRETER_STEPS))
    await tried('code-interpreter', title, () => step(sandbox));
  await sandbox.kill();
};

await (process.argv[2] === 'interpreter' ? interpreter() : services());
// Connections that a client has given up may linger.
process.exit(0);
