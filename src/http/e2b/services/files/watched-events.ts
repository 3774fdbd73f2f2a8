import { posix } from 'node:path';
import { Code, ConnectError } from '@connectrpc/connect';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { FileEvent } from '../../../../contracts/files.ts';
import { Refusal } from '../../../../model/refusals.ts';
import type { Operations } from '../../../../services/operations.ts';
import type { AddressedSandbox } from '../../traffic/addressed-sandbox.ts';
import { EventType, type FilesystemEventSchema } from '../generated/filesystem.ts';
import type { Entries } from './entries.ts';
import type { EntryInit } from './entry-info.ts';
import { targetAt, type Place } from './homes.ts';

export type EventInit = MessageInitShape<typeof FilesystemEventSchema>;

export interface WatchOrder {
  readonly sandbox: AddressedSandbox;
  readonly place: Place;
  readonly recursive: boolean;
  readonly includeEntry: boolean;
}

export interface Watch {
  readonly events: (signal: AbortSignal) => AsyncIterable<EventInit>;
  readonly close: () => void;
}

/**
 * Resolves when it watches. A file moved into place is created and written. Ends with `aborted` if
 * changes were missed.
 */
export const watchedEvents = async (
  operations: Pick<Operations, 'watchFiles'>,
  entries: Entries,
  { sandbox, place, recursive, includeEntry }: WatchOrder,
): Promise<Watch> => {
  const target = targetAt(sandbox, place.path);
  const { events, close } = await operations.watchFiles(sandbox.caller, target, { recursive });
  const entryOf = async (name: string, signal: AbortSignal): Promise<EntryInit | undefined> => {
    const [shown, path] = [posix.join(place.shown, name), posix.join(place.path, name)];
    try {
      return await entries.at(sandbox, { shown, path }, signal);
    } catch (error) {
      if (error instanceof Refusal) return undefined;
      throw error;
    }
  };
  return {
    close,
    events: async function* (signal) {
      for await (const batch of events(signal))
        for (const event of batch) {
          if (event.type === 'gone') return;
          if (event.type === 'overflow')
            throw new ConnectError(
              'changes were missed; list the folder, and watch it again',
              Code.Aborted,
            );
          const name = event.path.toString('utf8');
          for (const type of typesOf(event)) {
            const wanted = includeEntry && type !== EventType.REMOVE;
            const entry = wanted ? await entryOf(name, signal) : undefined;
            yield { name, type, entry };
          }
        }
    },
  };
};

const typesOf = ({ type, isFolder }: FileEvent): readonly EventType[] => {
  if (type === 'created')
    return isFolder ? [EventType.CREATE] : [EventType.CREATE, EventType.WRITE];
  if (type === 'changed') return [EventType.WRITE];
  return type === 'removed' ? [EventType.REMOVE] : [EventType.CHMOD];
};
