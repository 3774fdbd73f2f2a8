import { z } from 'zod';
import { duration, managerUrl, path } from './fields.ts';

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
  promotedKeysAlone: duration(
    5 * 60_000,
    30 * 24 * 60 * 60_000,
    'How long promoted keys of a manager are good at this cluster while that manager is not heard.',
  ),
  joinTokenFile: path(
    'File with the token of sandpool clusters join-token; read at the start, and needed until ' +
      'the cluster has joined; on Kubernetes always.',
  ).optional(),
});
