/**
 * Runs what script/test asks for: the checks and every mocha suite (a folder of test/, a process
 * each), or the test files that are named; with `--nodes` what stands on Node's own modules
 * on the other Nodes too, with `--other-nodes` that alone; with `kubernetes` alone the suites that need a control plane,
 * with `kubernetes --real-node` those that need a real node too, with `--machine` after it what looks
 * at all of the machine, with `--pods` the rest: none of these runs otherwise, and no checks run with
 * them. Four suites run beside each other, unless `--in-turn` is given: one of real
 * daemons that are measured and killed, one that does little but wait, one of this machine's
 * sandboxes, and another; with `--daemons`, `--waiting`, `--sandboxes` or `--others` one of these lanes runs alone. `--list` prints what would
 * run, and runs nothing. The last line printed is `N passed, N failed, N skipped`. Ends with 0, or
 * with 10 after a failure; any other code means that it crashed itself.
 *
 * A check counts as failed, not as passed. A suite that crashes, runs no test, goes on after its
 * last test or leaves processes behind counts as failed.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve, sep } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { OTHER_NODES, onOtherNodes, otherNode } from './other-nodes.ts';
import { endLeftovers, ofRun } from '../local-cluster/leftovers.ts';
import type { SuiteResult } from './test-reporter.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/**
 * For all suites together. They take about a quarter of an hour on two quiet cores, with the other
 * Nodes five minutes more; a noisy machine is several times slower.
 */
const RUN_DEADLINE_MS = 75 * 60_000;
/** A share of what is asked for: chance finds faults of ours, which are the same on every Node. */
const runsOnOtherNodes = (): number => Number(process.env['TEST_RUNS'] ?? 1) / 4;
/** How long a suite's process may live after its last test, and what it started after that. */
const END_GRACE_MS = 10_000;
const LEFTOVER_GRACE_MS = 10_000;
/** The suites of what needs a control plane, and a real node, by the arguments that ask for them. */
const KUBERNETES: Readonly<Record<string, Asked>> = {
  kubernetes: { suites: ['kubernetes', 'replicas'], withinMs: 58 * 60_000 },
  'kubernetes --real-node': { suites: ['real-node', 'clean-machine'], withinMs: 18 * 60_000 },
  'kubernetes --real-node --pods': { suites: ['real-node'], withinMs: 23 * 60_000 },
  'kubernetes --real-node --machine': { suites: ['clean-machine'], withinMs: 8 * 60_000 },
};
interface Asked {
  readonly suites: readonly string[];
  readonly withinMs: number;
}

const CHECKS: readonly { readonly name: string; readonly command: readonly string[] }[] = [
  { name: 'build', command: [join(ROOT, 'script/build')] },
  {
    name: 'type check',
    command: [
      process.execPath,
      join(ROOT, 'node_modules/typescript/bin/tsc'),
      '--noEmit',
      '-p',
      'tsconfig.json',
    ],
  },
  {
    name: 'format',
    command: [process.execPath, join(ROOT, 'node_modules/oxfmt/bin/oxfmt'), '--check'],
  },
  {
    name: 'lint',
    command: [
      process.execPath,
      join(ROOT, 'node_modules/oxlint/bin/oxlint'),
      '--type-aware',
      '--deny-warnings',
    ],
  },
];

/** `node`: the program that runs it; this one unless told. */
interface Suite {
  readonly name: string;
  readonly files: readonly string[];
  readonly node?: string;
}
interface Started {
  readonly child: ChildProcess;
  readonly session: number;
}

/** Which lane a suite is of; all that are not named are of the others. */
const LANE_OF: Readonly<Record<string, string>> = {
  // starts daemons, also on the default ports, and waits for facts of theirs
  e2e: '--daemons',
  replicas: '--daemons',
  // start sandboxes and commands on this machine, and look at what becomes of them
  cli: '--sandboxes',
  e2b: '--sandboxes',
  embedded: '--sandboxes',
  native: '--sandboxes',
  process: '--sandboxes',
  // do one thing after the other as a reader would
  examples: '--waiting',
  newcomers: '--waiting',
  // ask one daemon one thing after the other
  contract: '--waiting',
  api: '--waiting',
};
const LANES = ['--daemons', '--waiting', '--sandboxes', '--others'] as const;
/**
 * What of e2e asks one daemon, and neither measures nor kills it, or mostly waits, and what has to
 * be alone: suites of their own, which run last.
 */
const SUITES_APART: readonly { readonly name: string; readonly files: string }[] = [
  { name: 'contract', files: join('e2e', 'contract-') },
  { name: 'api', files: join('e2e', 'api.') },
  { name: 'alerts', files: join('e2e', 'alert-drills') },
  { name: 'examples', files: join('e2e', 'documentation') },
  { name: 'newcomers', files: join('e2e', 'newcomer') },
  // finds the mounts, links and folders of nodes and daemons beside it
  { name: 'clean-machine', files: join('real-node', 'a-clean-machine') },
];
const LIST = '--list';
const FLAGS: ReadonlySet<string> = new Set([
  '--nodes',
  '--other-nodes',
  '--in-turn',
  LIST,
  ...LANES,
]);

/**
 * Suites that run in turn, with a folder of their own for what they leave behind. Those of one that
 * is `quiet` are shown when they are over.
 */
interface Lane {
  readonly suites: readonly Suite[];
  readonly folder: string;
  readonly quiet: boolean;
  current?: Started;
}

const main = async (args: readonly string[]): Promise<number> => {
  const folder = mkdtempSync(join(tmpdir(), 'sandpool-'));
  // sandboxes run under uids of their own, and must reach their folders below it
  chmodSync(folder, 0o711);
  const kubernetes = KUBERNETES[args.filter((arg) => arg !== LIST).join(' ')];
  // else each suite has a control plane of its own
  const ofOneCluster = kubernetes !== undefined && process.env['TEST_KUBECONFIG'] !== undefined;
  const deadline = performance.now() + (kubernetes?.withinMs ?? RUN_DEADLINE_MS);
  const running: Lane[] = [];
  const abort = (signal: NodeJS.Signals): void => {
    for (const { current } of running) if (current) killSession(current);
    void Promise.all(
      running.map(({ current, folder: own }) =>
        endLeftovers(ofRun({ session: current?.session ?? -1, folder: own }), 0),
      ),
    ).finally(() => {
      rmSync(folder, { recursive: true, force: true });
      process.exit(signal === 'SIGINT' ? 130 : 143);
    });
  };
  process.once('SIGINT', abort);
  process.once('SIGTERM', abort);

  const files = kubernetes !== undefined ? [] : args.filter((arg) => !FLAGS.has(arg));
  const suites: readonly Suite[] =
    files.length === 0
      ? suitesOf(join(ROOT, 'test')).filter((suite) =>
          kubernetes === undefined
            ? !isOnKubernetes(suite) && isOfLane(suite, args)
            : kubernetes.suites.includes(suite.name),
        )
      : [{ name: 'the files named', files: files.map((file) => resolve(file)) }];
  const otherNodesAlone = args.includes('--other-nodes');
  if (args.includes(LIST)) return list(otherNodesAlone ? suites.map(ofOtherNodes) : suites);
  const buildOnly =
    kubernetes !== undefined ||
    otherNodesAlone ||
    LANES.some((lane) => lane !== '--others' && args.includes(lane));
  const checks = CHECKS.filter(
    ({ name }) => files.length === 0 && (!buildOnly || name === 'build'),
  );
  const results: SuiteResult[] = checks.map(runCheck);
  const runAll = async (chosen: readonly Suite[]): Promise<void> => {
    const of =
      args.includes('--in-turn') || files.length > 0 || ofOneCluster
        ? [chosen]
        : LANES.map((lane) => chosen.filter((suite) => laneOf(suite) === lane));
    const lanes = of
      .filter(({ length }) => length > 0)
      .map((own, n): Lane => ({ suites: own, folder: join(folder, String(n)), quiet: n > 0 }));
    running.splice(0, running.length, ...lanes);
    results.push(...(await Promise.all(lanes.map((lane) => runLane(lane, deadline)))).flat());
  };
  if (!otherNodesAlone) await runAll(suites);
  for (const major of otherNodesAlone || args.includes('--nodes') ? OTHER_NODES : []) {
    const node = otherNode(major);
    if ('cause' in node)
      results.push({ passed: 0, failed: [], skipped: [`Node ${major}: ${node.cause}`] });
    else
      await runAll(
        suites
          .map(ofOtherNodes)
          .map(({ name, files: own }) => ({
            name: `Node ${major}: ${name}`,
            files: own,
            node: node.program,
          }))
          .filter(({ files: { length } }) => length > 0),
      );
  }
  rmSync(folder, { recursive: true, force: true });
  return report(results);
};

const runCheck = ({
  name,
  command: [program = '', ...args],
}: (typeof CHECKS)[number]): SuiteResult => {
  const started = performance.now();
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd: ROOT,
    encoding: 'utf8',
    timeout: 180_000,
    maxBuffer: 16 * 2 ** 20,
  });
  console.log(
    `${status === 0 ? 'ok    ' : 'FAILED'}  ${name} (${((performance.now() - started) / 1_000).toFixed(1)} s)`,
  );
  if (status === 0) return { passed: 0, failed: [], skipped: [] };
  console.log(`${stdout}${stderr}${error ? error.message : ''}`);
  return { passed: 0, failed: [name], skipped: [] };
};

const suitesOf = (folder: string): readonly Suite[] => {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .sort();
  const suites = new Map<string, string[]>();
  const add = (name: string, file: string): void => {
    suites.set(name, [...(suites.get(name) ?? []), join(folder, file)]);
  };
  const apart = (file: string): string | undefined =>
    SUITES_APART.find((suite) => file.startsWith(suite.files))?.name;
  for (const file of files) if (apart(file) === undefined) add(file.split(sep)[0] ?? '', file);
  for (const { name, files: own } of SUITES_APART)
    for (const file of files.filter((each) => each.startsWith(own))) add(name, file);
  return [...suites].map(([name, own]) => ({ name, files: own }));
};

const isOnKubernetes = ({ name }: Suite): boolean =>
  Object.values(KUBERNETES).some(({ suites }) => suites.includes(name));

const laneOf = ({ name }: Suite): string => LANE_OF[name] ?? '--others';

/** Whether it is of the lane that the arguments ask for; all lanes without such an argument. */
const isOfLane = (suite: Suite, args: readonly string[]): boolean =>
  !LANES.some((lane) => args.includes(lane)) || args.includes(laneOf(suite));

const ofOtherNodes = ({ name, files }: Suite): Suite => ({ name, files: onOtherNodes(files) });

const list = (suites: readonly Suite[]): number => {
  for (const { name, files } of suites)
    if (files.length > 0) console.log(`${name}: ${files.length} files`);
  return 0;
};

const runLane = async (lane: Lane, deadline: number): Promise<readonly SuiteResult[]> => {
  mkdirSync(lane.folder, { recursive: true, mode: 0o711 });
  const results: SuiteResult[] = [];
  for (const suite of lane.suites) {
    console.log(lane.quiet ? `\n== ${suite.name} begins beside it` : `\n== ${suite.name}`);
    const began = performance.now();
    results.push(await runSuite(suite, lane, deadline));
    console.log(`== ${suite.name}: ${((performance.now() - began) / 1_000).toFixed(0)} s`);
  }
  return results;
};

const runSuite = async (suite: Suite, lane: Lane, deadline: number): Promise<SuiteResult> => {
  const failed = (problem: string, result?: SuiteResult): SuiteResult => {
    console.log(`\n${suite.name}: ${problem}`);
    return {
      passed: result?.passed ?? 0,
      failed: [...(result?.failed ?? []), `${suite.name}: ${problem}`],
      skipped: result?.skipped ?? [],
    };
  };
  if (performance.now() > deadline) return failed('not run, the time for all suites is over');
  const file = join(lane.folder, 'result.json');
  rmSync(file, { force: true });
  const suiteProcess = startMocha(suite, file, lane);
  const shown = shownAtItsEnd(suiteProcess.child);
  lane.current = suiteProcess;
  const end = await waitForEnd(suiteProcess, file, deadline);
  const leftovers = await endLeftovers(
    ofRun({ session: suiteProcess.session, folder: lane.folder }),
    LEFTOVER_GRACE_MS,
  );
  await shown();

  const found = readResult(file);
  if (!found)
    return failed(end.late ? 'did not end in time' : `crashed before its end (${end.how})`);
  let result = found;
  if (end.late)
    result = failed(
      `was still alive 10 s after its last test: something it opened was not closed (${found.open?.join(', ') ?? 'it does not say what'})`,
      result,
    );
  else if (
    end.how !== `exit code ${Math.min(found.failed.length, 255)}` &&
    found.failed.length === 0
  )
    result = failed(`failed after its last test (${end.how})`, result);
  if (found.passed + found.failed.length + found.skipped.length === 0)
    result = failed('ran no test', result);
  if (leftovers.length > 0) {
    result = failed(
      `left processes behind: ${leftovers.map(({ pid, command }) => `${pid} ${command}`).join('; ')}`,
      result,
    );
  }
  return result;
};

const startMocha = (
  { files, node = process.execPath }: Suite,
  result: string,
  { folder, quiet }: Lane,
): Started => {
  const clean = Object.entries(process.env).filter(([name]) => !name.startsWith('SANDPOOL_'));
  const mocha = join(ROOT, 'node_modules/mocha/bin/mocha.js');
  const options = [
    '--config',
    join(ROOT, '.mocharc.json'),
    '--reporter',
    join(ROOT, 'script/test-reporter.ts'),
    '--reporter-option',
    `result=${result}`,
  ];
  const child = spawn(node, [mocha, ...options, ...files], {
    cwd: ROOT,
    detached: true,
    env: {
      ...Object.fromEntries(clean),
      TMPDIR: folder,
      ...(node === process.execPath ? {} : { TEST_RUNS: String(runsOnOtherNodes()) }),
      PATH: `${dirname(node)}${delimiter}${process.env['PATH'] ?? ''}`,
    },
    stdio: quiet ? ['ignore', 'pipe', 'pipe'] : ['ignore', 'inherit', 'inherit'],
  });
  child.on('error', (error) => console.log(`mocha can't be started: ${error.message}`));
  return { child, session: child.pid ?? -1 };
};

/** Keeps what it prints, where that is not on the terminal yet; the function shows it. */
const shownAtItsEnd = ({ stdout, stderr }: ChildProcess): (() => Promise<void>) => {
  const parts: Buffer[] = [];
  const ends = [stdout, stderr]
    .filter((stream) => stream !== null)
    .map(async (stream) => {
      stream.on('data', (part: Buffer) => {
        parts.push(part);
      });
      await once(stream, 'close');
    });
  return async () => {
    await Promise.race([Promise.all(ends), pause(LEFTOVER_GRACE_MS)]);
    process.stdout.write(Buffer.concat(parts));
  };
};

/**
 * Resolves when the process has ended, by itself or killed: at the deadline, or when it lives on
 * after its last test.
 */
const waitForEnd = async (
  suiteProcess: Started,
  resultFile: string,
  deadline: number,
): Promise<{ readonly late: boolean; readonly how: string }> => {
  const { child } = suiteProcess;
  let until = deadline;
  let finished = false;
  while (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
    if (performance.now() > until) {
      killSession(suiteProcess);
      return { late: true, how: 'killed' };
    }
    await pause(100);
    if (!finished && existsSync(resultFile)) {
      finished = true;
      until = Math.min(deadline, performance.now() + END_GRACE_MS);
    }
  }
  return { late: false, how: child.signalCode ?? `exit code ${child.exitCode ?? 'unknown'}` };
};

const killSession = ({ session }: Started): void => {
  try {
    if (session > 0) process.kill(-session, 'SIGKILL');
  } catch {
    // It has ended.
  }
};

const readResult = (file: string): SuiteResult | undefined => {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as SuiteResult;
  } catch {
    return undefined;
  }
};

const report = (results: readonly SuiteResult[]): number => {
  const passed = results.reduce((sum, result) => sum + result.passed, 0);
  const failed = results.flatMap((result) => result.failed);
  const skipped = results.flatMap((result) => result.skipped);
  if (passed + failed.length + skipped.length === 0) failed.push('no test was found');
  console.log('');
  for (const line of skipped) console.log(`skipped: ${line}`);
  for (const line of failed) console.log(`FAILED: ${line}`);
  console.log(`${passed} passed, ${failed.length} failed, ${skipped.length} skipped`);
  return failed.length > 0 ? 10 : 0;
};

process.exitCode = await main(process.argv.slice(2));
