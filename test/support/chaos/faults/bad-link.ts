import type { FaultProxy } from '../../harness/fault-proxy.ts';
import type { Fault } from './fault.ts';

/**
 * `slow`: every byte is late. `cut`: reset repeatedly. `answers cut`: requests arrive, answers
 * don't. `half-open`: nothing moves. `one way out`, `one way in`: bytes pass only from, or to, the
 * side that opened the link.
 */
export type LinkTrouble =
  | 'slow'
  | 'cut'
  | 'answers cut'
  | 'half-open'
  | 'one way out'
  | 'one way in';
const STATES = {
  'answers cut': 'cut-answers',
  'half-open': 'hold',
  'one way out': 'swallow-answers',
  'one way in': 'swallow-requests',
} as const;

export type Breakable = Pick<FaultProxy, 'cut' | 'delayMs' | 'state'>;

const DELAY_MS = 400;
const CUT_EVERY_MS = 300;

/** The replica may keep its leases and be unable to write. */
export class BadLink implements Fault {
  readonly kind: string;
  readonly victim: string;
  readonly others = 'wait';
  readonly hinders: number;
  readonly lastsMs: number;
  readonly #proxy: Breakable;
  readonly #trouble: LinkTrouble;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    proxy: Breakable,
    {
      trouble,
      victim,
      hinders,
      lastsMs,
    }: {
      readonly trouble: LinkTrouble;
      readonly victim: string;
      readonly hinders: number;
      readonly lastsMs: number;
    },
  ) {
    [this.#proxy, this.#trouble, this.kind, this.victim, this.hinders, this.lastsMs] = [
      proxy,
      trouble,
      `link ${trouble}`,
      victim,
      hinders,
      lastsMs,
    ];
  }

  async begin(): Promise<void> {
    if (this.#trouble === 'slow') this.#proxy.delayMs = DELAY_MS;
    else if (this.#trouble !== 'cut') this.#proxy.state = STATES[this.#trouble];
    else {
      this.#proxy.cut();
      this.#timer = setInterval(() => {
        this.#proxy.cut();
      }, CUT_EVERY_MS);
    }
  }

  async end(): Promise<void> {
    clearInterval(this.#timer);
    this.#proxy.delayMs = 0;
    this.#proxy.state = 'pass';
  }
}
