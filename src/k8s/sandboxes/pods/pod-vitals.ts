import { wordsOfEnded, type StartHindrance, type Vitals } from '../../../model/sandbox.ts';
import { cleaned } from '../cleaned-message.ts';

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string | null;
}

interface Terminated {
  readonly exitCode?: number;
  readonly reason?: string;
}

interface ContainerStatus {
  readonly name: string;
  readonly state?: {
    readonly waiting?: { readonly reason?: string; readonly message?: string };
    readonly running?: object;
    readonly terminated?: Terminated;
  };
}

export interface PodStatus {
  readonly phase?: string;
  readonly startTime?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly conditions?: readonly Condition[];
  readonly containerStatuses?: readonly ContainerStatus[];
}

export interface PodShape {
  /** The end of the first is the sandbox's. */
  readonly containers: readonly string[];
  /** Deadline of its deletion in ms since the epoch. */
  readonly endsBy: number | undefined;
  readonly isAsked?: boolean;
  readonly node?: string;
}

/**
 * An instance is gone once its first container has ended, in any phase. Reports the end of another
 * container, unless the whole Pod is being deleted.
 */
export const vitalsOf = (status: PodStatus | undefined, shape: PodShape): Vitals => {
  const gone = goneOf(status, shape);
  if (gone) return gone;
  const ended = shape.endsBy === undefined ? endedContainersOf(status) : undefined;
  if (status?.phase !== 'Running' && !ended) return pendingOf(status, shape);
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  const since = ready?.lastTransitionTime ? { since: Date.parse(ready.lastTransitionTime) } : {};
  if (ended)
    return { kind: 'starting', reason: wordsOfEnded(ended), endedContainers: ended, ...since };
  const startedAt = status?.startTime === undefined ? 0 : Date.parse(status.startTime);
  if (ready?.status === 'True') return { kind: 'available', startedAt, ...since };
  return { ...unreadyOf(ready, shape), ...since };
};

const unreadyOf = (
  ready: Condition | undefined,
  { isAsked, node }: PodShape,
): Extract<Vitals, { kind: 'starting' }> => ({
  kind: 'starting',
  reason:
    ready?.message === undefined
      ? 'its readiness probe has not passed'
      : cleaned(ready.message, node),
  ...(isAsked ? { advice: LISTEN } : {}),
});

/** A Pod that did not fit on its node is also Failed with a reason. */
export const disruptionOf = (
  status: PodStatus | undefined,
  node: string | undefined,
): string | undefined => {
  const condition = status?.conditions?.find(
    ({ type, status: is }) => type === 'DisruptionTarget' && is === 'True',
  );
  if (condition) return said(condition.reason ?? condition.type, condition.message, node);
  return status?.phase === 'Failed' && status.reason !== undefined
    ? said(status.reason, status.message, node)
    : undefined;
};

const goneOf = (
  status: PodStatus | undefined,
  { containers, endsBy, node }: PodShape,
): Vitals | undefined => {
  const isOver = status?.phase === 'Succeeded' || status?.phase === 'Failed';
  const main = terminatedOf(status, containers[0]);
  if (!isOver && !main) return undefined;
  const others = containers.slice(1);
  const remains = !isOver && others.some((name) => terminatedOf(status, name) === undefined);
  return {
    kind: 'gone',
    exitCode: main ? (main.exitCode ?? null) : exitCodeOf(status?.containerStatuses),
    reason: endOf(status ?? {}, main, node),
    ...(main?.reason === OUT_OF_MEMORY ? { outOfMemory: true } : {}),
    ...(remains ? { remains, ...(endsBy === undefined ? {} : { endsBy }) } : {}),
  };
};

const LISTEN =
  "the kubelet connects to the Pod's address: the server must listen on all addresses, not " +
  'only on 127.0.0.1, or the probe must be an exec';

const OUT_OF_MEMORY = 'OOMKilled';

const terminatedOf = (
  status: PodStatus | undefined,
  container: string | undefined,
): Terminated | undefined =>
  status?.containerStatuses?.find(({ name }) => name === container)?.state?.terminated;

const endedContainersOf = (
  status: PodStatus | undefined,
): Readonly<Record<string, string>> | undefined => {
  const ended = (status?.containerStatuses ?? []).flatMap(({ name, state }) => {
    if (!state?.terminated) return [];
    const { exitCode, reason } = state.terminated;
    return [
      [name, `${reason === OUT_OF_MEMORY ? `${reason}, ` : ''}exit code ${exitCode ?? 'unknown'}`],
    ];
  });
  return ended.length === 0
    ? undefined
    : (Object.fromEntries(ended) as Readonly<Record<string, string>>);
};

const exitCodeOf = (containers: readonly ContainerStatus[] = []): number | null => {
  const codes = containers.flatMap(({ state }) => state?.terminated?.exitCode ?? []);
  return codes.find((code) => code !== 0) ?? codes[0] ?? null;
};

const endOf = (
  { phase, reason, message, containerStatuses = [] }: PodStatus,
  main: Terminated | undefined,
  node: string | undefined,
): string => {
  if (reason !== undefined) return said(reason, message, node);
  const terminated =
    main ?? containerStatuses.find(({ state }) => state?.terminated)?.state?.terminated;
  if (!terminated) return `its Pod ${phase === 'Failed' ? 'failed' : 'ended'}`;
  return (
    `${terminated.reason ?? 'Terminated'}: its main process ended with exit code ` +
    `${terminated.exitCode ?? 'unknown'}`
  );
};

const STARTING: ReadonlySet<string> = new Set(['ContainerCreating', 'PodInitializing']);

const pendingOf = (status: PodStatus | undefined, { node }: PodShape): Vitals => {
  const isWaiting = ({ state }: ContainerStatus): boolean =>
    state?.waiting !== undefined && !STARTING.has(state.waiting.reason ?? '');
  const waiting = status?.containerStatuses?.find(isWaiting)?.state?.waiting;
  if (waiting?.reason !== undefined) {
    const hindrance = hindranceOf(waiting.reason);
    return { kind: 'starting', reason: said(waiting.reason, waiting.message, node), hindrance };
  }
  const unscheduled = status?.conditions?.find(
    ({ type, status: is }) => type === 'PodScheduled' && is === 'False',
  );
  if (!unscheduled) return { kind: 'starting' };
  return {
    kind: 'starting',
    reason: said(unscheduled.reason ?? 'Unschedulable', unscheduled.message, node),
    hindrance: 'Unschedulable',
  };
};

const hindranceOf = (reason: string): StartHindrance | undefined => {
  if (/Image|^RegistryUnavailable$|^SignatureValidationFailed$/.test(reason))
    return 'ImageUnavailable';
  return reason.endsWith('Error') ? 'ContainerNotCreated' : undefined;
};

const MOST_TEXT = 300;
const said = (reason: string, message: string | undefined, node: string | undefined): string =>
  message === undefined ? reason : `${reason}: ${cleaned(message, node).slice(0, MOST_TEXT)}`;
