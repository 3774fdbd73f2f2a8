import type { CoordinationHealth } from '../contracts/coordination.ts';
import type { Log } from '../contracts/log.ts';
import type { RedisLink } from './redis-link.ts';

const LOOK_MS = 30_000;

export interface RedisHealthDeps {
  readonly channels: { readonly stands: boolean };
  readonly log: Log;
}

/** After each reconnect, and every half minute. */
export class RedisHealth {
  readonly #links: readonly RedisLink[];
  readonly #channels: RedisHealthDeps['channels'];
  readonly #log: Log;
  #warnings: readonly string[] = [];
  #timer: NodeJS.Timeout | undefined;
  readonly #onReady = (): void => {
    void this.#look();
  };

  /** The first link is asked. */
  constructor(links: readonly [RedisLink, ...RedisLink[]], { channels, log }: RedisHealthDeps) {
    this.#links = links;
    this.#channels = channels;
    this.#log = log;
  }

  /** Never rejects. */
  async start(): Promise<void> {
    this.#links[0]?.client.on('ready', this.#onReady);
    this.#timer ??= setInterval(this.#onReady, LOOK_MS).unref();
    await this.#look();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#links[0]?.client.off('ready', this.#onReady);
  }

  describe(): CoordinationHealth {
    const deaf = this.#channels.stands
      ? []
      : ['Redis channels are not received: keys revoked elsewhere stay valid here for a moment'];
    return {
      problems: this.#links.every(({ answering }) => answering) ? [] : ['Redis does not answer'],
      warnings: [...this.#warnings, ...deaf],
    };
  }

  async #look(): Promise<void> {
    try {
      const infos = (await this.#links[0]?.info('persistence', 'memory')) ?? [];
      const warnings = [...new Set(infos.flatMap(warningsOf))];
      for (const warning of warnings)
        if (!this.#warnings.includes(warning)) this.#log.warn({ warning }, 'redis-warning');
      this.#warnings = warnings;
    } catch {
      // reported as unreachable elsewhere
    }
  }
}

const warningsOf = (info: string): readonly string[] => {
  const valueOf = (name: string): string | undefined =>
    new RegExp(`^${name}:([^\\r\\n]*)`, 'm').exec(info)?.[1];
  const policy = valueOf('maxmemory_policy') ?? 'noeviction';
  return [
    ...(valueOf('aof_enabled') === '0'
      ? [
          'Redis has no append-only file (appendonly no): if it crashes, history and stored ' +
            'answers are lost',
        ]
      : []),
    ...(valueOf('aof_enabled') === '1' && valueOf('aof_last_write_status') === 'err'
      ? ['Redis cannot write its append-only file']
      : []),
    ...(policy === 'noeviction'
      ? []
      : [`Redis may evict stored data (maxmemory-policy ${policy}, not noeviction)`]),
  ];
};
