import { z } from 'zod';
import { managerUrl, path } from './fields.ts';

export const fleetSettings = z.strictObject({
  managers: z
    .array(managerUrl, 'must be a list of URLs')
    .max(8)
    .meta({
      description:
        'Managers that this cluster lets pass requests on to it, each wss://HOST:PORT; it opens ' +
        'the links itself.',
    }),
  addresses: z
    .array(managerUrl, 'must be a list of URLs')
    .max(8)
    .meta({
      description:
        'Addresses by which workers reach this manager, each wss://HOST:PORT: one that dialled ' +
        'another address is refused. Empty: any.',
    }),
  joinTokenFile: path(
    'File with the token of sandpool clusters join-token; read at the start, and needed until ' +
      'the cluster has joined; on Kubernetes always.',
  ).optional(),
});
