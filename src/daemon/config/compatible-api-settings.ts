import { z } from 'zod';
import { choice, duration, listenerOrNone } from './fields.ts';

export const compatibleApiSettings = z.strictObject({
  listen: listenerOrNone("Address and port of the API for E2B's SDKs; none turns this API off."),
  domain: z
    .string('must be text')
    .regex(
      /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?(?::[0-9]{1,5})?$/,
      'must be a domain in lower case, with its port if it has one',
    )
    .optional()
    .meta({
      description:
        'Domain whose names {port}-{id}.DOMAIN lead to this daemon, for links to ports. Unset: ' +
        'the host in the request, without a leading api.',
    }),
  openPorts: choice(
    ['off', 'on'],
    "Whether anyone who knows a sandbox's id can reach its ports without E2B-Traffic-Access-Token.",
  ),
  wait: duration(0, 50_000, 'How long a request to create a sandbox waits for an idle instance.'),
  images: z
    .array(z.string('must be text').min(1).max(512), 'must be a list of prefixes')
    .max(256)
    .meta({
      description:
        'Prefixes of the images that a request to create a sandbox may name (POOL//IMAGE). If ' +
        'empty, it may not name an image.',
    }),
  imageWait: duration(
    1_000,
    600_000,
    'How long a request to create a sandbox with its own image waits for the sandbox to start.',
  ),
  withoutPause: choice(
    ['refuse', 'end'],
    "Answer to a request that asks for a pause at the sandbox's end, if sandboxes cannot " +
      'be paused.',
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
        "Template names, each with the caller's pool or env that it stands for, as TEMPLATE=POOL.",
    }),
});
