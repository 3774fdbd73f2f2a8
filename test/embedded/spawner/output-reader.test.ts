import { expect } from 'chai';
import { OutputChannel } from '../../../src/embedded/driver/output-channel.ts';
import { OutputReader } from '../../../src/embedded/spawner/processes/output-reader.ts';
import { FIRST_BYTES, OutputRing } from '../../../src/embedded/spawner/processes/output-ring.ts';
import { READ_WINDOW } from '../../../src/embedded/spawner/protocol.ts';

/** A process that printed so many bytes, each to the other stream. */
const aReading = (printed: number) => {
  const ring = new OutputRing({ take: () => true, release: () => undefined });
  for (let at = 0; at < printed; at += 1)
    ring.append(at % 2 === 0 ? 'stdout' : 'stderr', Buffer.from('x'));
  let sent = 0;
  const channel = new OutputChannel({
    credit: (bytes) => reader.credit(bytes),
    close: () => reader.close(),
  });
  const process = { ring, isLive: true, leave: () => undefined, look: () => undefined };
  const reader: OutputReader = new OutputReader(
    process,
    { pace: false },
    {
      output: (stream, bytes) => {
        sent += 1;
        channel.output(stream, bytes);
        return true;
      },
      position: (position) => channel.position(position),
      dropped: (bytes) => channel.dropped(bytes),
      ended: () => undefined,
      lost: () => undefined,
    },
  );
  reader.pump();
  return { channel, sent: () => sent };
};

describe('a reader of process output', () => {
  it('buffers little for a slow reader, even with single bytes', () => {
    const { sent } = aReading(100_000);
    expect(sent()).to.be.within(1, READ_WINDOW / 256);
  });

  it('continues to the end in single bytes as they are read', async () => {
    const printed = FIRST_BYTES + 20_000;
    const { channel } = aReading(printed);
    let read = 0;
    for await (const each of channel.read(new AbortController().signal)) {
      read += each.kind === 'bytes' ? each.bytes.length : 0;
      if (read === printed) break;
    }
    expect(read).to.equal(printed);
  });
});
