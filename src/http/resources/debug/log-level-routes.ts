import type { LogLevelView } from '../../../services/debug/log-levels.ts';
import type { Operations } from '../../../services/operations.ts';
import { ok, route, type Route } from '../../corridor/route.ts';
import { timestampOf } from '../../corridor/common-schema.ts';
import { LogLevelReport, SetLogLevelBody, type LogLevelWire } from './log-level-schema.ts';

export const logLevelRoutes = (operations: Operations): readonly Route[] => [
  route({
    operationId: 'getLogLevel',
    method: 'GET',
    path: '/debug/log-level',
    access: 'admin',
    summary: 'Get the log level of the answering replica',
    answers: { 200: LogLevelReport },
    refusals: [],
    handle: ({ caller }) => ok(presentLogLevel(operations.getLogLevel(caller))),
  }),
  route({
    operationId: 'setLogLevel',
    method: 'PUT',
    path: '/debug/log-level',
    access: 'admin',
    summary: 'Change the log level of the answering replica, optionally for a limited time',
    body: SetLogLevelBody,
    answers: { 200: LogLevelReport },
    refusals: [],
    handle: ({ caller, body }) =>
      ok(
        presentLogLevel(
          operations.setLogLevel(caller, {
            level: body.level,
            forMs: body.forSeconds === undefined ? undefined : body.forSeconds * 1_000,
          }),
        ),
      ),
  }),
];

const presentLogLevel = ({ replica, level, configured, until }: LogLevelView): LogLevelWire => ({
  replica,
  level,
  configured,
  until: timestampOf(until),
});
