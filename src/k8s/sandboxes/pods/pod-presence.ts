import { ContainerGone, InstanceGone, NotJoinable } from '../../../contracts/sandbox-driver.ts';
import type { ApiClient } from '../../api/api-calls.ts';
import { ApiRefused, ApiUnreachable, isAbsent, LinkLate, NotSent } from '../../api/api-errors.ts';
import { cleaned } from '../cleaned-message.ts';
import { podPath } from './pod-resource.ts';

/**
 * Nothing could be run, since the node did not answer the API server. Nobody inside the Pod can
 * bring that about.
 */
export class NodeSilent extends NotJoinable {
  constructor(options: ErrorOptions) {
    super('the node of the sandbox does not answer; try again', options);
  }
}

/**
 * Matches what API servers say of a kubelet that they do not reach, at its beginning alone: what
 * follows may be a tenant's words.
 */
const UNREACHED = /^(Internal error occurred: )?error (dialing backend|sending request):/;

/** Tells whether the status of a command says that the kubelet was not reached. */
export const isNodeSilent = (failure: string): boolean => UNREACHED.test(failure);

/** One container of one Pod, and of no later one of that name. */
export interface PodTarget {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly container: string;
  /** The node that it runs on, as far as that is known. */
  readonly node?: string;
}

export interface PodPresence {
  /**
   * `gone`: there is no such Pod any more. `ended`: it is over, or its first container is.
   * `container-ended`: this other one is. `ending`: it was told to end.
   */
  readonly state: 'gone' | 'ended' | 'container-ended' | 'ending' | 'waiting' | 'running';
  /** In a few words. */
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

/**
 * Reads how the container stands now, uncached. Rejects as `ApiClient.get` does, but for a Pod that
 * isn't there.
 */
export const presenceOf = async (api: ApiClient, target: PodTarget): Promise<PodPresence> => {
  const found = await api.get(podPath(target.namespace, target.name)).catch((error: unknown) => {
    if (isAbsent(error, 'pods')) return undefined;
    throw error;
  });
  const pod = (found ?? {}) as PodObject;
  const { metadata } = pod;
  if (metadata?.uid === undefined) return { state: 'gone', why: 'there is no such Pod' };
  if (metadata.uid !== target.uid) return { state: 'gone', why: 'another Pod has its name now' };
  const over = overIn(pod, target);
  if (over) return over;
  if (metadata.deletionTimestamp !== undefined) return { state: 'ending', why: 'its Pod ends' };
  const state = stateOf(pod, target.container);
  return state?.running
    ? { state: 'running', why: 'it runs' }
    : { state: 'waiting', why: state?.waiting?.reason ?? 'its container has not started' };
};

/** Says what has ended: the Pod, its first container or the target's; undefined if all go on. */
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

/**
 * Rejects with InstanceGone or ContainerGone, or with NotJoinable where nothing can be run in it
 * now or the API server doesn't tell.
 */
export const requireJoinable = async (api: ApiClient, target: PodTarget): Promise<void> => {
  const { state, why } = await presenceOf(api, target).catch((error: unknown) => {
    throw unjoinable(error);
  });
  if (state === 'waiting') throw new NotJoinable(`nothing can be run in the sandbox yet: ${why}`);
  if (state === 'container-ended') throw new ContainerGone(why);
  if (state !== 'running') throw new InstanceGone(why);
};

/** Tells where a Pod stands, and is told of nodes that did not answer. */
export interface PodWays {
  readonly api: ApiClient;
  /** The node did not answer the API server, or that not us. */
  readonly silent: (target: PodTarget) => void;
}

/**
 * Opens a way into a Pod. A kubelet that has just started answers 404 for what it has run all the
 * while, and API servers pass that on as if they had no such Pod: whether it is gone is read off
 * the Pod. The caller reads that, too: an answer that is still due then is the kubelet's. Rejects
 * with InstanceGone or NotJoinable, or with what `way` rejects with. That the node is silent is
 * told also where nobody waits for the way any more.
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
 * Opens a way by which nothing happens in the Pod by itself, while it is read whether that can be
 * joined, which is what counts: a way into a Pod that can't be is closed, whenever it opens.
 * Rejects as `requireJoinable`, else as `enterPod`.
 */
export const enterWhileLooking = async <T extends { close(): void }>(
  ways: PodWays,
  target: PodTarget,
  way: Promise<T>,
): Promise<T> => {
  const entering = enterPod(ways, target, way);
  entering.catch(() => undefined); // the look is told first
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

/** Makes the error of a way into a Pod that failed before anything was begun in it. */
export const unjoinable = (error: unknown): unknown => {
  if (isAbsent(error, 'pods')) return new InstanceGone('there is no such Pod', { cause: error });
  if (error instanceof ApiRefused)
    return new NotJoinable(`the API server refused: ${cleaned(error.message)}`, { cause: error });
  if (error instanceof ApiUnreachable || error instanceof NotSent)
    return new NotJoinable('the API server does not answer', { cause: error });
  return error;
};
