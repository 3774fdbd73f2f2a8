import { z } from 'zod';
import { choice, duration, listenerOrNone } from './fields.ts';

export const compatibleApiSettings = z.strictObject({
  listen: listenerOrNone(
    "Address and port that E2B's SDKs find their API on; none serves no such API.",
  ),
  domain: z
    .string('must be text')
    .regex(
      /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?(?::[0-9]{1,5})?$/,
      'must be a domain in lower case, with its port where it has one',
    )
    .optional()
    .meta({
      description:
        'Domain whose names {port}-{id}.DOMAIN lead here, for links to ports. Unset: the host ' +
        'that a request names, without api. before it.',
    }),
  openPorts: choice(
    ['off', 'on'],
    'Whether ports of sandboxes are for whoever knows an id, without E2B-Traffic-Access-Token.',
  ),
  wait: duration(
    0,
    50_000,
    'How long the creation of a sandbox waits for an instance where none is idle.',
  ),
  images: z
    .array(z.string('must be text').min(1).max(512), 'must be a list of prefixes')
    .max(256)
    .meta({
      description:
        'Prefixes of the images that a creation may name (POOL//IMAGE); none: none may be named.',
    }),
  imageWait: duration(
    1_000,
    600_000,
    'How long the creation of a sandbox with an image of its own waits for its start.',
  ),
  withoutPause: choice(
    ['refuse', 'end'],
    'What a creation gets that asks for a pause at its end, where sandboxes can not be paused.',
  ),
  templates: z
    .array(
      z
        .string('must be text')
        .regex(
          /^[A-Za-z0-9._-]{1,128}=[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/,
          'must be TEMPLATE=POOL',
        ),
      'must be a list of TEMPLATE=POOL',
    )
    .max(256)
    .meta({
      description:
        'Names of templates, and the pool or env of the caller that each stands for, as ' +
        'TEMPLATE=POOL.',
    }),
});
