import { ContainerGone, InstanceGone, NotJoinable } from '../../../contracts/sandbox-driver.ts';
import type { ApiClient } from '../../api/api-calls.ts';
import { ApiRefused, ApiUnreachable, isAbsent, LinkLate, NotSent } from '../../api/api-errors.ts';
import { cleaned } from '../cleaned-message.ts';
import { podPath } from './pod-resource.ts';

/**
 * The node did not answer the API server, so nothing was run. Nobody inside the Pod can cause this.
 */
export class NodeSilent extends NotJoinable {
  constructor(options: ErrorOptions) {
    super('the node of the sandbox does not answer; try again', options);
  }
}

/** Matches only the start: the rest may be a tenant's text. */
const UNREACHED = /^(Internal error occurred: )?error (dialing backend|sending request):/;

export const isNodeSilent = (failure: string): boolean => UNREACHED.test(failure);

/** Identified by uid, so not a later Pod of the same name. */
export interface PodTarget {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly container: string;
  readonly node?: string;
}

export interface PodPresence {
  /** `ended`: the Pod or its first container. `container-ended`: another container, the target. */
  readonly state: 'gone' | 'ended' | 'container-ended' | 'ending' | 'waiting' | 'running';
  readonly why: string;
}

interface PodObject {
  readonly metadata?: { readonly uid?: string; readonly deletionTimestamp?: string };
  readonly spec?: { readonly containers?: readonly { readonly name: string }[] };
  readonly status?: {
    readonly phase?: string;
    readonly reason?: string;
    readonly containerStatuses?: readonly {
      readonly name: string;
      readonly state?: {
        readonly running?: object;
        readonly terminated?: object;
        readonly waiting?: { readonly reason?: string };
      };
    }[];
  };
}

/** Uncached. Rejects as `ApiClient.get` does, except for a missing Pod. */
export const presenceOf = async (api: ApiClient, target: PodTarget): Promise<PodPresence> => {
  const found = await api.get(podPath(target.namespace, target.name)).catch((error: unknown) => {
    if (isAbsent(error, 'pods')) return undefined;
    throw error;
  });
  const pod = (found ?? {}) as PodObject;
  const { metadata } = pod;
  if (metadata?.uid === undefined) return { state: 'gone', why: 'the Pod does not exist' };
  if (metadata.uid !== target.uid) return { state: 'gone', why: 'another Pod has its name now' };
  const over = overIn(pod, target);
  if (over) return over;
  if (metadata.deletionTimestamp !== undefined) return { state: 'ending', why: 'its Pod ends' };
  const state = stateOf(pod, target.container);
  return state?.running
    ? { state: 'running', why: 'it runs' }
    : { state: 'waiting', why: state?.waiting?.reason ?? 'its container has not started' };
};

const overIn = (pod: PodObject, { container }: PodTarget): PodPresence | undefined => {
  const { spec, status } = pod;
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed')
    return { state: 'ended', why: `its Pod ${status.reason ?? 'ended'}` };
  if (stateOf(pod, spec?.containers?.[0]?.name ?? container)?.terminated)
    return { state: 'ended', why: 'its main process ended' };
  return stateOf(pod, container)?.terminated
    ? { state: 'container-ended', why: `the container "${container}" has ended` }
    : undefined;
};

const stateOf = ({ status }: PodObject, container: string) =>
  status?.containerStatuses?.find(({ name }) => name === container)?.state;

/** Rejects with InstanceGone or ContainerGone, and with NotJoinable if nothing can be run now. */
export const requireJoinable = async (api: ApiClient, target: PodTarget): Promise<void> => {
  const { state, why } = await presenceOf(api, target).catch((error: unknown) => {
    throw unjoinable(error);
  });
  if (state === 'waiting') throw new NotJoinable(`nothing can be run in the sandbox yet: ${why}`);
  if (state === 'container-ended') throw new ContainerGone(why);
  if (state !== 'running') throw new InstanceGone(why);
};

export interface PodWays {
  readonly api: ApiClient;
  /** The API server did not reach the node, or did not answer us. */
  readonly silent: (target: PodTarget) => void;
}

/**
 * A restarted kubelet answers 404 at first, even for running Pods, so reads the Pod to find out
 * whether it is gone. Rejects with InstanceGone or NotJoinable, or with the error of `way`. Reports
 * a silent node even if no caller waits any more.
 */
export const enterPod = async <T>(
  { api, silent }: PodWays,
  target: PodTarget,
  way: Promise<T>,
): Promise<T> => {
  try {
    return await way;
  } catch (error) {
    if (error instanceof LinkLate || (error instanceof ApiRefused && isNodeSilent(error.message))) {
      silent(target);
      throw new NodeSilent({ cause: error });
    }
    if (!isAbsent(error, 'pods')) throw unjoinable(error);
    await requireJoinable(api, target);
    throw new NotJoinable(NOT_KNOWN_YET, { cause: error });
  }
};

/**
 * Checks in parallel whether the Pod is joinable, so the stream must have no effect by itself.
 * Rejects as `requireJoinable`, then as `enterPod`.
 */
export const enterWhileLooking = async <T extends { close(): void }>(
  ways: PodWays,
  target: PodTarget,
  way: Promise<T>,
): Promise<T> => {
  const entering = enterPod(ways, target, way);
  entering.catch(() => undefined); // the check's error comes first
  try {
    await requireJoinable(ways.api, target);
  } catch (error) {
    way.then(
      (opened) => {
        opened.close();
      },
      () => undefined,
    );
    throw error;
  }
  return await entering;
};

export const NOT_KNOWN_YET =
  'the node of the sandbox is starting and does not know it yet; try again';

/** The stream failed before anything began. */
export const unjoinable = (error: unknown): unknown => {
  if (isAbsent(error, 'pods')) return new InstanceGone('the Pod does not exist', { cause: error });
  if (error instanceof ApiRefused)
    return new NotJoinable(`the API server refused: ${cleaned(error.message)}`, { cause: error });
  if (error instanceof ApiUnreachable || error instanceof NotSent)
    return new NotJoinable('the API server does not answer', { cause: error });
  return error;
};
