/** On the built daemon, in place of the newest pinned versions. See `script/newer-sdks --help`. */
import { execFile, execFileSync, spawnSync, type ExecFileSyncOptions } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { toCompatibleForm } from '../src/model/api-key-text.ts';
import { SDKS, type Sdk } from '../test/e2b/a-sdk.ts';
import { folderOfPackages } from '../test/e2b/python/packages.ts';
import { DaemonUnderTest } from '../test/support/harness/a-daemon.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const CACHE = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
const FOLDER = join(CACHE, 'sandpool/newer-sdks');
const VENV = folderOfPackages(FOLDER);
const PYTHON = join(VENV, 'bin/python');
const OF_NPM = ['e2b', '@e2b/code-interpreter'];
const OF_PIP = ['e2b', 'e2b-code-interpreter'];
const INSTALL_MS = 300_000;
const SUITES_MS = 900_000;

const [OLDEST] = [...SDKS.keys()];
const PINNED = [...SDKS.keys()].at(-1) ?? '';
/** Imported name, and its replacement. */
const IN_PLACE = {
  [`e2b-${PINNED.replaceAll('.', '-')}`]: 'e2b',
  '@e2b/code-interpreter': '@e2b/code-interpreter',
};

/** Registers itself, and resolves those names to the packages beside it. */
const HOOK = `
import { register } from 'node:module';
import { isMainThread } from 'node:worker_threads';
const inPlace = ${JSON.stringify(IN_PLACE)};
export const resolve = (name, context, next) =>
  Object.hasOwn(inPlace, name)
    ? next(inPlace[name], { ...context, parentURL: import.meta.url })
    : next(name, context);
if (isMainThread) register(import.meta.url);
`;

const install = (): void => {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  const quiet: ExecFileSyncOptions = {
    timeout: INSTALL_MS,
    stdio: ['ignore', 'ignore', 'inherit'],
  };
  const named = OF_NPM.map((name) => `${name}@latest`);
  const plain = ['--no-audit', '--no-fund', '--ignore-scripts'];
  execFileSync('npm', ['install', '--prefix', FOLDER, ...plain, ...named], quiet);
  execFileSync('python3', ['-m', 'venv', VENV], quiet);
  const pip = ['-m', 'pip', 'install', '--quiet', '--no-input', '--only-binary', ':all:'];
  execFileSync(PYTHON, [...pip, ...OF_PIP], quiet);
  writeFileSync(join(FOLDER, 'in-place.mjs'), HOOK);
};

const versionOfNpm = (name: string): string => {
  const text = readFileSync(join(FOLDER, 'node_modules', name, 'package.json'), 'utf8');
  return (JSON.parse(text) as { readonly version: string }).version;
};

const versionOfPip = (name: string): string => {
  const program = `import importlib.metadata as of; print(of.version('${name}'))`;
  return execFileSync(PYTHON, ['-c', program], { encoding: 'utf8' }).trim();
};

const ofNpm = (name: string): string => `${name} ${versionOfNpm(name)} (npm)`;
const ofPip = (name: string): string => `${name} ${versionOfPip(name)} (pip)`;

/** Fails if the suites would still get the pinned ones. */
const requireInPlace = (env: NodeJS.ProcessEnv): void => {
  for (const name of Object.keys(IN_PLACE)) {
    const program = `console.log(import.meta.resolve('${name}'))`;
    const args = ['--input-type=module', '-e', program];
    const found = execFileSync(process.execPath, args, { cwd: ROOT, env, encoding: 'utf8' });
    if (!found.startsWith(pathToFileURL(FOLDER).href)) throw new Error(`${name} leads to ${found}`);
  }
};

const suitesPass = (): boolean => {
  const ofPinned = `${PINNED.replaceAll('.', '\\.')}|every method`;
  const hook = pathToFileURL(join(FOLDER, 'in-place.mjs')).href;
  const env = { ...process.env, XDG_CACHE_HOME: FOLDER, NODE_OPTIONS: `--import ${hook}` };
  requireInPlace(env);
  const suites: readonly (readonly [of: string, args: readonly string[]])[] = [
    [
      ofNpm('e2b'),
      [
        ...['test/docs/e2b-methods.test.ts', 'test/e2b/control.test.ts'],
        ...['test/e2e/contract-e2b.test.ts', '--grep', ofPinned],
      ],
    ],
    [ofNpm('@e2b/code-interpreter'), ['test/e2e/contract-code-interpreter.test.ts']],
    [OF_PIP.map(ofPip).join(', '), ['test/e2e/contract-e2b-python.test.ts']],
  ];
  const results = suites.map(([of, args]) => {
    console.log(`\nwith ${of}, where tests say ${PINNED}`);
    const sure = ['--forbid-pending', '--fail-zero'];
    const command = ['--import', 'tsx', 'node_modules/.bin/mocha', ...sure, ...args];
    const terms = { cwd: ROOT, env, timeout: SUITES_MS, stdio: 'inherit' } as const;
    return {
      of,
      passes: spawnSync(process.execPath, command, { ...terms, killSignal: 'SIGINT' }).status === 0,
    };
  });
  for (const { of, passes } of results) console.log(`${passes ? 'passed' : 'FAILED'}: ${of}`);
  return results.every(({ passes }) => passes);
};

const SILENT_S = 325;
const COMMAND = `sleep ${SILENT_S}; echo late`;
const PROGRAM = `
from e2b import Sandbox
sandbox = Sandbox.create(timeout=600)
print(sandbox.commands.run("${COMMAND}", timeout=400).stdout, end="")
sandbox.kill()`;

/** A command that is silent for long must end well. */
const silenceEndsWell = async (): Promise<boolean> => {
  const daemon = await DaemonUnderTest.start(['--compatible-api-listen', '127.0.0.1:0']);
  const url = daemon.compatibleUrl;
  const apiKey = toCompatibleForm(daemon.tenantKey);
  const byNpm = async (Sandbox: Sdk | undefined): Promise<string | undefined> => {
    const options = { apiKey, apiUrl: url, sandboxUrl: url, timeoutMs: 600_000 };
    const sandbox = await Sandbox?.create('base', options);
    const done = await sandbox?.commands.run(COMMAND, { timeoutMs: 400_000 });
    await sandbox?.kill();
    return done?.stdout;
  };
  const byPip = async (): Promise<string> => {
    const env = {
      ...{ PATH: process.env['PATH'], E2B_API_KEY: apiKey },
      ...{ E2B_API_URL: url, E2B_SANDBOX_URL: url },
    };
    const terms = { env, timeout: 500_000 };
    return (await promisify(execFile)(PYTHON, ['-c', PROGRAM], terms)).stdout;
  };
  try {
    const { Sandbox } = createRequire(join(FOLDER, 'package.json'))('e2b') as { Sandbox: Sdk };
    const tried = {
      [`e2b ${OLDEST} (npm)`]: byNpm(SDKS.get(OLDEST ?? '')),
      [ofNpm('e2b')]: byNpm(Sandbox),
      [ofPip('e2b')]: byPip(),
    };
    const ends = await Promise.all(
      Object.entries(tried).map(async ([of, printed]) => {
        const told = await printed.catch(String);
        const passes = told === 'late\n';
        console.log(passes ? `passed: ${of}` : `FAILED: ${of}: ${told}`);
        return passes;
      }),
    );
    return ends.every(Boolean);
  } finally {
    await daemon.dispose();
  }
};

install();
const passes = process.argv[2] === '--silence' ? await silenceEndsWell() : suitesPass();
// A given-up connection of a client may linger.
process.exit(passes ? 0 : 1);
