import type { ProcessUpgrades } from '../../src/http/terminal/terminal.ts';
import { mayConcern, type PolicyRule } from '../../src/model/approvals/policy.ts';
import { keyRateMet } from '../../src/model/limit-refusals.ts';
import type { ProcessFact, ProcessOutput } from '../../src/model/process.ts';
import { invalidApiKey, type Refusal } from '../../src/model/refusals.ts';
import type { Caller } from '../../src/model/tenant.ts';
import type { FollowProcessRequest } from '../../src/services/processes/process-operations.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const CALLER: Caller = { namespace: 'blue', team: 'blue', user: 'b', role: 'user', keyId: 'k' };

export const FACT: ProcessFact = {
  processId: 'p1',
  pid: 7,
  argv: ['cat'],
  status: 'Running',
  startedAt: 0,
  tty: true,
  stdin: true,
};

/** A process in memory; each of its readers is one of `#readers`, in the order in which they came. */
export class FakeProcess {
  readonly clock = new TestClock();
  readonly asked: FollowProcessRequest[] = [];
  readonly input: string[] = [];
  readonly done: string[] = [];
  rules: readonly PolicyRule[] = [];
  /** What the next inputs are refused with. */
  refusing: Refusal[] = [];
  /** What reading it is refused with. */
  refusal: Refusal | undefined;
  /** It prints without end. */
  floods = false;
  /** Bytes that readers took of that. */
  given = 0;
  closes = 0;
  readonly #events: ProcessOutput[] = [];
  readonly #readers: { failure: Error | undefined; isOpen: boolean }[] = [];
  readonly #revokes: (() => void)[] = [];
  readonly #waiting = new Set<() => void>();

  tell(event: ProcessOutput): void {
    this.#events.push(event);
    this.#wake();
  }

  print(stream: 'stdout' | 'stderr', bytes: Buffer, next: string): void {
    this.tell({ kind: 'bytes', stream, bytes, next });
  }

  flood(): void {
    this.floods = true;
    this.#wake();
  }

  /** The first reader that has not failed does. */
  fail(failure: Error): void {
    const reader = this.#readers.find((each) => each.isOpen);
    if (reader) reader.failure = failure;
    this.#wake();
  }

  revoke(): void {
    for (const ended of this.#revokes) ended();
  }

  upgrades(): ProcessUpgrades {
    return {
      gate: {
        rulesFor: (operation, method) =>
          this.rules.filter((rule) => mayConcern(rule, { operation, method })),
      },
      clock: this.clock,
      clients: {
        authenticate: ({ headers }) => {
          const key = headers['service-api-key'];
          if (key === 'bad') throw invalidApiKey();
          return { ...CALLER, keyId: String(key) };
        },
        followKey: (_caller, ended) => {
          this.#revokes.push(ended);
          return () => {};
        },
      },
      admission: {
        count: ({ keyId }) => {
          if (keyId === 'fast') throw keyRateMet(1, 1);
        },
      },
      operations: {
        followProcess: async (_caller, _sandboxId, request) => {
          this.asked.push(request);
          if (this.refusal) throw this.refusal;
          const reader = { failure: undefined, isOpen: true };
          this.#readers.push(reader);
          return {
            fact: FACT,
            output: (signal) => this.#output(reader, signal),
            close: () => {
              if (reader.isOpen) this.closes += 1;
              reader.isOpen = false;
            },
          };
        },
        giveInput: async (_caller, _sandboxId, { bytes, last }) => {
          const refusal = this.refusing.shift();
          if (refusal) throw refusal;
          this.input.push(last ? 'end' : bytes.toString());
        },
        signalProcess: async (_caller, _sandboxId, { name }) => {
          this.done.push(name);
          return FACT;
        },
        resizeProcess: async (_caller, _sandboxId, { cols, rows }) => {
          this.done.push(`${cols}x${rows}`);
          return FACT;
        },
      },
    };
  }

  async *#output(
    reader: { readonly failure: Error | undefined },
    signal: AbortSignal,
  ): AsyncGenerator<ProcessOutput> {
    signal.addEventListener('abort', () => this.#wake());
    for (let at = 0; !signal.aborted;) {
      if (reader.failure) throw reader.failure;
      const event = this.#events[at];
      if (event) {
        at += 1;
        yield event;
        if (event.kind === 'end') return;
      } else if (this.floods) {
        this.given += 32 << 10;
        yield { kind: 'bytes', stream: 'stdout', bytes: Buffer.alloc(32 << 10), next: '1' };
      } else
        await new Promise<void>((resolve) => {
          this.#waiting.add(resolve);
        });
    }
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}
