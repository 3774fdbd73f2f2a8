import { OutcomeUnknown } from '../../../contracts/sandbox-driver.ts';
import type { ScriptChannel } from '../../streams/script-channel.ts';
import type { ChannelReader } from '../channel-reader.ts';
import { archiveEnd, paddingOf, TarDamaged, writeHeader, type TarEntry } from './tar-header.ts';
import { tarParts } from './tar-parts.ts';

/** Matches what is being written, which no list shows either. */
const DRAFT = /(?:^|\/)\.sandpool-[0-9a-f]{16}\.part(?:\/|$)/;

/**
 * Makes an archive of what the container's tar prints: as POSIX has it, without what is no file,
 * folder or link. Throws OutcomeUnknown where something is cut off.
 */
export async function* packedTree(
  channel: ScriptChannel,
  reader: ChannelReader,
): AsyncGenerator<Buffer, void, undefined> {
  let padding = 0;
  let isWanted = false;
  try {
    for await (const part of tarParts(piecesOf(reader))) {
      if ('content' in part) {
        if (isWanted) yield part.content;
        continue;
      }
      const { entry } = part;
      if (padding > 0) yield Buffer.alloc(padding);
      isWanted = entry.kind !== 'other' && !DRAFT.test(entry.name);
      padding = isWanted ? paddingOf(entry.size) : 0;
      if (isWanted) yield writeHeader({ ...entry, name: nameOf(entry) }, 'pax');
    }
  } catch (error) {
    throw error instanceof TarDamaged ? cutOff() : error;
  }
  if (channel.exitCode !== 0) throw cutOff();
  yield Buffer.concat([Buffer.alloc(padding), archiveEnd()]);
}

const cutOff = (): OutcomeUnknown =>
  new OutcomeUnknown('the folder could not be packed to its end');

/** Tools differ in what they put around a folder's name. */
const nameOf = ({ kind, name }: TarEntry): string => {
  const below = name.replace(/^(?:\.?\/)+/, '').replace(/\/+$/, '');
  return kind === 'folder' && below !== '' && below !== '.'
    ? `./${below}/`
    : `./${below === '.' ? '' : below}`;
};

async function* piecesOf(reader: ChannelReader): AsyncGenerator<Buffer, void, undefined> {
  for (let piece = await reader.piece(); piece; piece = await reader.piece()) yield piece;
}
