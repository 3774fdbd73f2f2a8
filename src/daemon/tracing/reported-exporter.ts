import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base';
import type { Log } from '../../contracts/log.ts';

type Result = Parameters<Parameters<SpanExporter['export']>[1]>[0];

/**
 * Exports by another exporter; logs once when that begins to fail, and once when it works again.
 */
export class ReportedExporter implements SpanExporter {
  readonly #exporter: SpanExporter;
  readonly #collector: string;
  readonly #log: Log;
  #failing = false;

  constructor(
    exporter: SpanExporter,
    { collector, log }: { readonly collector: string; readonly log: Log },
  ) {
    this.#exporter = exporter;
    this.#collector = collector;
    this.#log = log;
  }

  export(spans: ReadableSpan[], done: (result: Result) => void): void {
    this.#exporter.export(spans, (result) => {
      this.#report(result.error);
      done(result);
    });
  }

  async shutdown(): Promise<void> {
    await this.#exporter.shutdown();
  }

  async forceFlush(): Promise<void> {
    await this.#exporter.forceFlush?.();
  }

  #report(error: Error | undefined): void {
    const collector = this.#collector;
    if ((error !== undefined) === this.#failing) return;
    this.#failing = error !== undefined;
    if (error) this.#log.warn({ collector, failure: failureOf(error) }, NOT_TAKEN);
    else this.#log.info({ collector }, 'traces are taken again');
  }
}

const NOT_TAKEN = 'traces are not taken; they are dropped';

/** Says how an export failed: by the collector's status, as what it answers is not logged. */
const failureOf = (error: Error): string =>
  'code' in error && typeof error.code === 'number' ? `it answered ${error.code}` : error.message;
