import { readFileSync } from 'node:fs';
import type { Config } from '../config/config.ts';
import type { Log } from '../../contracts/log.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import { version } from '../process/version.ts';
import { post } from '../../services/webhooks/post.ts';
import type { WebhookReceiver } from '../../services/webhooks/webhook-queue.ts';
import { Webhooks } from '../../services/webhooks/webhooks.ts';
import type { Assembly } from './assembly.ts';

/** Undefined without configured receivers. */
export const openWebhooks = (
  { approvals, clusterId, console: { url: consoleUrl } }: Config,
  {
    parts: { clock, coordination, deadLetters },
    log,
    metrics,
    leads,
  }: {
    readonly parts: Pick<Assembly, 'clock' | 'coordination' | 'deadLetters'>;
    readonly log: Log;
    readonly metrics: Metrics;
    readonly leads: (shard: number) => boolean;
  },
): Webhooks | undefined =>
  approvals.webhooks.length === 0
    ? undefined
    : new Webhooks({
        receivers: approvals.webhooks.map(receiverOf),
        marks: coordination,
        deadLetters,
        clock,
        log,
        metrics,
        post,
        terms: {
          clusterId,
          consoleUrl,
          userAgent: `sandpool/${version()}`,
        },
        giveUpMs: approvals.webhooksFor,
        leads,
      });

const SHORTEST_SECRET = 16;

const receiverOf = ({
  url,
  secretFile,
}: Config['approvals']['webhooks'][number]): WebhookReceiver => {
  const secret = readFileSync(secretFile, 'utf8').trim();
  if (secret.length < SHORTEST_SECRET)
    throw new Error(
      `the secret of a webhook in ${secretFile} must have at least ${SHORTEST_SECRET} ` +
        'characters',
    );
  return { url, secret };
};
