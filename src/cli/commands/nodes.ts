import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Command } from 'commander';
import { parseDuration } from '../../model/durations.ts';
import type { Action } from '../common/action.ts';
import { durationText } from '../common/arguments.ts';
import { type CliContext, print, say } from '../common/context.ts';
import { CliFailure } from '../common/failure.ts';
import { group, leaf } from '../common/leaf.ts';
import { progressOn } from '../terminal/progress.ts';

interface DrainOptions {
  readonly wait: string;
  readonly context?: string;
}

/** Claimed sandboxes still run on the node after the wait. */
const TIME_OVER = 3;
const LOOK_EVERY_MS = 2_000;
const CALL_MS = 30_000;
const MOST_NAMED = 20;

export const nodesGroup = (action: Action): Command =>
  group('nodes', 'Empties a node of a Kubernetes cluster', [drainLeaf(action)]);

const drainLeaf = (action: Action): Command =>
  leaf({
    usage: 'drain <node>',
    summary:
      'Cordons a node with kubectl, and waits until no sandbox is on it. Idle instances move ' +
      'to other nodes, and claimed sandboxes run until they end. Their owners get an event. ' +
      `Exits with 0 if the node is empty, or with ${TIME_OVER} if claimed sandboxes still ` +
      'run after the wait; the node then stays cordoned.',
    examples: [
      'sandpool nodes drain node-7 --wait 4h &&' +
        ' kubectl drain node-7 --ignore-daemonsets --delete-emptydir-data',
      'sandpool nodes drain node-7 --context production',
    ],
  })
    .option('--wait <duration>', 'how long to wait', durationText, '1h')
    .option('--context <name>', 'context of the kubeconfig; by default its current context')
    .action(
      action(1, async (context, [node], options: DrainOptions) => {
        const kubectl = kubectlOf(context, options);
        await kubectl('cordon', '--', String(node));
        await say(context, `node ${String(node)} is cordoned`);
        return await emptied(context, kubectl, { node: String(node), wait: options.wait });
      }),
    );

type Kubectl = (...args: readonly string[]) => Promise<string>;

const emptied = async (
  context: CliContext,
  kubectl: Kubectl,
  { node, wait }: { readonly node: string; readonly wait: string },
): Promise<number> => {
  const deadline = performance.now() + (parseDuration(wait) ?? 0);
  const progress = progressOn(context);
  let said = '';
  for (;;) {
    const left = await whatIsOn(kubectl, node).catch((error: unknown) => {
      if (performance.now() > deadline) throw error;
      return undefined; // the API server may be unreachable for a while
    });
    if (left?.pods === 0) {
      progress.end();
      await print(context.stdout, `node ${node} has no sandboxes any more\n`);
      return 0;
    }
    const text = left
      ? `${left.claimed.length} claimed sandboxes run on ${node}, ` +
        `${left.pods - left.claimed.length} others are leaving`
      : 'the API server does not answer right now';
    progress.tell(text);
    if (context.stderr.isTTY !== true && text !== said) await say(context, text);
    said = text;
    if (left && performance.now() > deadline) {
      progress.end();
      await say(context, `after ${wait} ${text}; the node stays cordoned`, ...named(left.claimed));
      return TIME_OVER;
    }
    await new Promise((resolve) => {
      setTimeout(resolve, Math.min(LOOK_EVERY_MS, Math.max(100, deadline - performance.now())));
    });
  }
};

const named = (claimed: readonly string[]): readonly string[] => [
  ...claimed.slice(0, MOST_NAMED),
  ...(claimed.length > MOST_NAMED ? [`and ${claimed.length - MOST_NAMED} more`] : []),
];

interface Left {
  readonly pods: number;
  /** Named `namespace/sandbox`. */
  readonly claimed: readonly string[];
}

const whatIsOn = async (kubectl: Kubectl, node: string): Promise<Left> => {
  const pods = linesOf(
    await kubectl(
      ...['get', 'pods', '--all-namespaces', '--selector=sandpool.dev/pool-uid', '--no-headers'],
      `--field-selector=spec.nodeName=${node},status.phase!=Succeeded,status.phase!=Failed`,
      '--output=custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name',
    ),
  );
  const namespaces = [...new Set(pods.map(([namespace = '']) => namespace))];
  const claimed: string[] = [];
  for (const namespace of namespaces) {
    const names = pods.flatMap(([of, name = '']) => (of === namespace ? [name] : []));
    const records = await kubectl(
      ...['get', 'sandboxes.sandpool.dev', '--namespace', namespace, ...names],
      ...['--ignore-not-found', '--no-headers'],
      '--output=custom-columns=NAME:.metadata.name,STATE:.spec.state',
    );
    for (const [name = '', state] of linesOf(records))
      if (state === 'claimed') claimed.push(`${namespace}/${name}`);
  }
  return { pods: pods.length, claimed };
};

const linesOf = (text: string): readonly (readonly string[])[] =>
  text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => line.trim().split(/\s+/));

/** With the user's own rights, since the daemon lacks rights on nodes. */
const kubectlOf =
  ({ env }: CliContext, { context }: DrainOptions): Kubectl =>
  async (...args) => {
    const given = context === undefined ? args : [`--context=${context}`, ...args];
    try {
      const { stdout } = await promisify(execFile)('kubectl', given, {
        env,
        timeout: CALL_MS,
        maxBuffer: 16 * 2 ** 20,
      });
      return stdout;
    } catch (error) {
      const { code, stderr = '' } = error as { readonly code?: unknown; readonly stderr?: string };
      if (code === 'ENOENT')
        throw new CliFailure('kubectl is not in PATH', ['install kubectl, and try again'], {
          cause: error,
        });
      throw new CliFailure(stderr.trim() || 'kubectl did not answer in time', [], {
        cause: error,
      });
    }
  };
