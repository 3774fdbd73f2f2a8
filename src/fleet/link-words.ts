import { z } from 'zod';

/**
 * Says what goes over a new link before it carries requests: the manager asks, by HTTP/2, and the
 * worker answers. `POST /hello` gives each the other's key and a number used once; `POST /prove`
 * has the manager sign both, and then the worker, which gives its join token to nobody that has not
 * proved to be its manager; `POST /keys` tells of promoted keys; `POST /welcome` takes the worker
 * in, `POST /refused` says why not.
 */
export const LINK_VERSION = 1;

const text = z.string().min(1).max(512);

export const ManagerHello = z.object({ version: z.int(), managerKey: text, nonce: text });
export const WorkerHello = z.object({
  version: z.int(),
  clusterID: text,
  clusterKey: text,
  nonce: text,
});
export const ManagerProof = z.object({ signature: text });
export const WorkerProof = z.object({ signature: text, joinToken: text.optional() });
export const Welcome = z.object({ linkId: text });
/** `left`: the manager knows no such cluster, and none of its promoted keys is good there. */
export const Refused = z.object({ error: text, left: z.literal(true).optional() });

export type ManagerHello = z.infer<typeof ManagerHello>;
export type WorkerHello = z.infer<typeof WorkerHello>;

/** The most bytes of one of these. */
export const MOST_WORDS = 8_192;

/** Returns the text that both sign. It begins with who signs, so that neither is the other's. */
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
    worker.clusterID,
    worker.clusterKey,
    worker.nonce,
  ]);
