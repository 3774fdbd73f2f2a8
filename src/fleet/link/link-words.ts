import { z } from 'zod';

/**
 * Says what goes over a new link before it carries requests: the manager asks, by HTTP/2, and the
 * worker answers. `POST /hello` gives each the other's key and a number used once; `POST /prove`
 * has the manager sign both, and then the worker, which gives its join token to nobody that has not
 * proved to be its manager; `POST /keys` tells of promoted keys; `POST /welcome` takes the worker
 * in, `POST /refused` says why not. From then on `POST /replicas` says how many replicas the
 * manager has, each time that it changes, and `POST /leave` is answered when the worker takes
 * nothing new any more. `POST /templates` tells of global templates, and `POST /template` asks how
 * the worker stands to one.
 */
export const LINK_VERSION = 1;

const text = z.string().min(1).max(512);
/** One end's half of the link's secret, by which identities are signed. */
const half = text;

export const ManagerHello = z.object({
  version: z.int(),
  managerKey: text,
  nonce: text,
  /** Which of the manager's replicas it is. */
  replica: text,
  /** Says which TLS connection it came by; empty where TLS ends before the manager. */
  channel: z.string().max(512),
  half,
});
export const WorkerHello = z.object({
  version: z.int(),
  clusterID: text,
  clusterKey: text,
  nonce: text,
  /** Which of the cluster's replicas it is. */
  replica: text,
  /** The origin of the URL that it dialled. */
  address: text,
  half,
  /**
   * Names this start of a daemon whose store is one machine's: of such a cluster one start is
   * linked at a time. Left out where replicas share a store.
   */
  start: z.string().min(1).max(64).optional(),
});
export const ManagerProof = z.object({ signature: text });
/** `held`: another link leads to this replica already, and this one is to end. */
export const WorkerProof = z.union([
  z.object({ held: z.literal(true) }),
  z.object({ signature: text, joinToken: text.optional() }),
]);
/**
 * Bounds the links of a worker's replica to one manager, and those of a cluster at one replica of a
 * manager.
 */
export const MOST_REPLICAS = 64;
const replicas = z.int().min(1).max(1_000_000);
export const Welcome = z.object({ linkId: text, replicas });
export const ReplicaCount = z.object({ replicas });
/**
 * `left`: the manager knows no such cluster, and none of its promoted keys is good there; `copied`:
 * another start of the cluster is linked, and answers.
 */
export const Refused = z.object({
  error: text,
  left: z.literal(true).optional(),
  copied: z.literal(true).optional(),
});

export type ManagerHello = z.infer<typeof ManagerHello>;
export type WorkerHello = z.infer<typeof WorkerHello>;

/** Says that what the other end said is no word of a link, or none that may come now. */
export class UnsoundWord extends Error {
  override readonly name = 'UnsoundWord';
}

/** Says whether an error is of what the other end said, and not of this one, or of the network. */
export const isOfOtherEnd = (error: unknown): boolean =>
  error instanceof UnsoundWord || error instanceof z.ZodError || error instanceof SyntaxError;

/** The most bytes of one of these. */
export const MOST_WORDS = 8_192;

/**
 * Returns the text that both sign. It begins with who signs, so that neither is the other's. Both
 * halves are in it, so that nobody between the two puts others in their place.
 */
export const transcriptOf = (
  by: 'manager' | 'worker',
  manager: ManagerHello,
  worker: WorkerHello,
): string =>
  JSON.stringify([
    'sandpool link',
    by,
    LINK_VERSION,
    manager.managerKey,
    manager.nonce,
    manager.replica,
    manager.channel,
    worker.clusterID,
    worker.clusterKey,
    worker.nonce,
    worker.replica,
    worker.address,
    manager.half,
    worker.half,
  ]);
