import { posix } from 'node:path';
import { Code, ConnectError, type HandlerContext, type ServiceImpl } from '@connectrpc/connect';
import type { Clock } from '../../../../contracts/clock.ts';
import { LONG_BYTES } from '../../../reply/long-answer.ts';
import { Refusal } from '../../../../model/refusals.ts';
import type { Operations } from '../../../../services/operations.ts';
import type { AddressedSandbox } from '../../traffic/addressed-sandbox.ts';
import type { Filesystem } from '../generated/filesystem.ts';
import { keepaliveMs, SILENCE, withSilences } from '../keepalives.ts';
import { badArgument } from '../rpc/rpc-errors.ts';
import { callOf, sandboxOf } from '../rpc/rpc-server.ts';
import { Entries } from './entries.ts';
import { bytesOf, entriesAsJson } from './entry-info.ts';
import { targetAt, type Homes, type Place } from './homes.ts';
import { watchedEvents, type WatchOrder } from './watched-events.ts';
import type { Watchers } from './watchers.ts';

export interface FilesystemServiceDeps {
  readonly operations: Pick<
    Operations,
    'statFile' | 'listFiles' | 'makeFolder' | 'moveFile' | 'removeFile' | 'watchFiles'
  >;
  readonly homes: Homes;
  readonly watchers: Watchers;
  readonly clock: Clock;
}

export const filesystemService = (
  deps: FilesystemServiceDeps,
): Partial<ServiceImpl<typeof Filesystem>> => {
  const { operations, homes, watchers, clock } = deps;
  const entries = new Entries(operations);
  const makeParents = async (sandbox: AddressedSandbox, path: string, signal: AbortSignal) => {
    const above = targetAt(sandbox, posix.dirname(path));
    await operations.makeFolder(sandbox.caller, above, { parents: true, signal });
  };
  const watchOrder = async (
    context: HandlerContext,
    request: { path: string; recursive: boolean; includeEntry: boolean },
  ): Promise<WatchOrder> => {
    const sandbox = sandboxOf(context);
    const place = await homes.place(sandbox, request.path);
    await entries.requireFolder(sandbox, place, context.signal);
    return { sandbox, place, recursive: request.recursive, includeEntry: request.includeEntry };
  };

  return {
    stat: async ({ path }, context) => {
      const sandbox = sandboxOf(context);
      const place = await homes.place(sandbox, path);
      return { entry: await entries.at(sandbox, place, context.signal) };
    },
    listDir: async ({ path, depth }, context) => {
      const call = callOf(context);
      const place = await homes.place(call.sandbox, path);
      const found = await entries.in(call.sandbox, { place, depth }, context.signal);
      const bytes = await bytesOf(found);
      if (bytes <= LONG_BYTES) return { entries: found };
      call.room().hold(bytes);
      call.longJson = entriesAsJson(found);
      return {};
    },
    makeDir: async ({ path }, context) => {
      const sandbox = sandboxOf(context);
      const place = await homes.place(sandbox, path);
      const target = targetAt(sandbox, place.path);
      const request = { parents: true, signal: context.signal };
      const { stat, created } = await asFolder(place, () =>
        operations.makeFolder(sandbox.caller, target, request),
      );
      if (!created) throw new ConnectError(`${place.shown} already exists`, Code.AlreadyExists);
      return { entry: entries.shown(place, stat) };
    },
    move: async ({ source, destination }, context) => {
      const sandbox = sandboxOf(context);
      const [from, to] = [
        await homes.place(sandbox, source),
        await homes.place(sandbox, destination),
      ];
      const target = targetAt(sandbox, from.path);
      // Before folders are created.
      await operations.statFile(sandbox.caller, target, context.signal);
      await makeParents(sandbox, to.path, context.signal);
      await operations.moveFile(sandbox.caller, target, {
        to: targetAt(sandbox, to.path).path,
        overwrite: true,
        signal: context.signal,
      });
      return { entry: await entries.at(sandbox, to, context.signal) };
    },
    remove: async ({ path }, context) => {
      const sandbox = sandboxOf(context);
      const { path: found } = await homes.place(sandbox, path);
      const target = targetAt(sandbox, found);
      try {
        const { signal } = context;
        await operations.removeFile(sandbox.caller, target, { recursive: true, signal });
      } catch (error) {
        // A missing file counts as removed.
        if (!(error instanceof Refusal && error.code === 'FILE_NOT_FOUND')) throw error;
      }
      return {};
    },
    watchDir: async function* (request, context) {
      const order = await watchOrder(context, request);
      const everyMs = keepaliveMs(context.requestHeader.get('keepalive-ping-interval'));
      const { events, close } = await watchedEvents(operations, entries, order);
      try {
        yield { event: { case: 'start', value: {} } };
        for await (const event of withSilences(events(context.signal), { clock, everyMs }))
          yield event === SILENCE
            ? { event: { case: 'keepalive', value: {} } }
            : { event: { case: 'filesystem', value: event } };
        context.signal.throwIfAborted();
      } finally {
        close();
      }
    },
    createWatcher: async (request, context) => {
      const order = await watchOrder(context, request);
      const begin = () => watchedEvents(operations, entries, order);
      return { watcherId: await watchers.add(order.sandbox, begin) };
    },
    getWatcherEvents: async ({ watcherId }, context) => ({
      events: await watchers.take(sandboxOf(context), watcherId),
    }),
    removeWatcher: async ({ watcherId }, context) => {
      watchers.remove(sandboxOf(context), watcherId);
      return {};
    },
  };
};

const asFolder = async <T>(place: Place, make: () => Promise<T>): Promise<T> => {
  try {
    return await make();
  } catch (error) {
    if (error instanceof Refusal && (error.code === 'CONFLICT' || error.code === 'ALREADY_EXISTS'))
      throw badArgument(`${place.shown}: ${error.message}`);
    throw error;
  }
};
