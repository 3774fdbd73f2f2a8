import { randomBytes } from 'node:crypto';
import type { Clock } from '../contracts/clock.ts';
import type { OutgoingCall, RequestSpan, Tracer } from '../contracts/tracing.ts';
import { traceParentText, type TraceParent } from '../model/trace-context.ts';
import { attributesOf, type OtlpSpan } from './otlp-span.ts';
import { SpanSender, type SpanSenderDeps } from './span-sender.ts';

export interface OtlpTracerDeps extends SpanSenderDeps {
  readonly clock: Clock;
  /** Of the traces that begin here, in percent. */
  readonly samplePercent: number;
  /** From 0 up to 1. */
  readonly random?: () => number;
}

const [INTERNAL, SERVER, CLIENT] = [1, 2, 3] as const;
/** Steps of one request that are told. */
const MOST_STEPS = 32;
/** Requests to other services that are told, of one request. */
const MOST_CALLS = 32;

/** Sends spans to a collector of OpenTelemetry, by OTLP over HTTP in JSON. */
export class OtlpTracer implements Tracer {
  readonly #deps: OtlpTracerDeps;
  readonly #sender: SpanSender;

  constructor(deps: OtlpTracerDeps) {
    this.#deps = deps;
    this.#sender = new SpanSender(deps);
  }

  begin(parent: TraceParent | undefined): RequestSpan {
    const { clock, samplePercent, random = Math.random } = this.#deps;
    const [traceId, spanId] = [parent?.traceId ?? idOf(16), idOf(8)];
    const sampled = parent ? parent.sampled : random() * 100 < samplePercent;
    if (!sampled) {
      const unrecorded: OutgoingCall = {
        traceparent: traceParentText({ traceId, parentId: spanId, sampled }),
        ended: () => undefined,
      };
      return {
        traceId,
        spanId,
        sampled,
        step: () => undefined,
        call: () => unrecorded,
        end: () => undefined,
      };
    }
    const [wall, began] = [clock.now(), performance.now()];
    const at = (moment: number): string => nanoseconds(wall + moment - began);
    const steps: OtlpSpan[] = [];
    const calls: OtlpSpan[] = [];
    let [called, over] = [0, false];
    return {
      traceId,
      spanId,
      sampled,
      step: (name, from, to) => {
        if (steps.length >= MOST_STEPS) return;
        steps.push({
          traceId,
          spanId: idOf(8),
          parentSpanId: spanId,
          name,
          kind: INTERNAL,
          startTimeUnixNano: at(from),
          endTimeUnixNano: at(to),
          attributes: [],
          status: { code: 0 },
        });
      },
      call: (name) => {
        const [id, from] = [idOf(8), performance.now()];
        return {
          traceparent: traceParentText({ traceId, parentId: id, sampled }),
          ended: (outcome, attributes) => {
            if (++called > MOST_CALLS) return;
            const call: OtlpSpan = {
              traceId,
              spanId: id,
              parentSpanId: spanId,
              name,
              kind: CLIENT,
              startTimeUnixNano: at(from),
              endTimeUnixNano: at(performance.now()),
              attributes: attributesOf(attributes),
              status: { code: outcome === 'good' ? 0 : 2 },
            };
            if (over) this.#sender.add([call]); // a mirror may see a write before its answer comes
            else calls.push(call);
          },
        };
      },
      end: (name, attributes, outcome) => {
        const whole: OtlpSpan = {
          traceId,
          spanId,
          ...(parent ? { parentSpanId: parent.parentId } : {}),
          name,
          kind: SERVER,
          startTimeUnixNano: at(began),
          endTimeUnixNano: at(performance.now()),
          attributes: attributesOf(attributes),
          status: { code: outcome === 'good' ? 0 : 2 },
        };
        over = true;
        this.#sender.add([whole, ...steps, ...calls]);
      },
    };
  }

  /** Sends what is left, in two seconds or not at all. */
  async stop(): Promise<void> {
    await this.#sender.stop();
  }
}

const idOf = (bytes: number): string => {
  for (;;) {
    const id = randomBytes(bytes).toString('hex');
    if (/[^0]/.test(id)) return id;
  }
};

/** Milliseconds with what follows the point. */
const nanoseconds = (ms: number): string =>
  `${Math.floor(ms)}${String(Math.floor((ms % 1) * 1_000_000)).padStart(6, '0')}`;
