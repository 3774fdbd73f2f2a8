import { randomUUID } from 'node:crypto';
import type { AuditSink } from '../../contracts/audit.ts';
import type { ControlCommands } from '../control/control-server.ts';
import { errorAnswer } from '../../http/reply/error-table.ts';
import { Refusal } from '../../model/refusals.ts';

/** A field of what a command is given; empty where it is no text. */
export const textOf = (body: unknown, field: string): string => {
  const value = (body as Readonly<Record<string, unknown>> | null)?.[field];
  return typeof value === 'string' ? value : '';
};

/**
 * Makes commands of the control socket that are told to the audit, with the field `target` of what
 * they are given under the name `as`. What is refused is answered as over the API.
 */
export const auditedCommand =
  (audit: AuditSink | undefined) =>
  (
    operation: string,
    target: { readonly field: string; readonly as: string } | undefined,
    run: (body: unknown) => Promise<object>,
  ): ControlCommands[string] =>
  async (body) => {
    const answer = await answerOf(run(body));
    audit?.note({
      requestId: randomUUID(),
      via: 'control-socket',
      operation,
      status: answer.status,
      target:
        target === undefined
          ? undefined
          : { [target.as]: textOf(body, target.field).slice(0, 256) },
    });
    return answer;
  };

/** A command that only looks: it is not told to the audit. */
export const answerOf = (
  asked: Promise<object>,
): Promise<{ readonly status: number; readonly body: object }> =>
  asked.then(
    (done) => ({ status: 200, body: done }),
    (error: unknown) => {
      if (!(error instanceof Refusal)) throw error;
      const { status, body: said } = errorAnswer(error, '');
      return { status, body: said };
    },
  );
