import { expect } from 'chai';
import {
  dataFrame,
  endStream,
  openStream,
  pingFrame,
  resetStream,
  SpdyReader,
  type SpdyEvent,
} from '../../src/k8s/streams/spdy-frames.ts';

const heardOf = (pieces: readonly Buffer[]): readonly SpdyEvent[] => {
  const heard: SpdyEvent[] = [];
  const reader = new SpdyReader((event) => heard.push(event));
  for (const piece of pieces) reader.push(piece);
  return heard;
};
const control = (type: number, body: Buffer): Buffer =>
  Buffer.concat([Buffer.from([0x80, 3, 0, type, 0, 0, 0, body.length]), body]);

describe('frames of SPDY', () => {
  it('begins streams with headers that any decompressor of zlib takes as they are', () => {
    const block = Buffer.from('\0\0\0\x01\0\0\0\x04port\0\0\0\x028e', 'latin1');
    const stored = Buffer.concat([
      Buffer.from([0, block.length, 0, 255 - block.length, 255]),
      block,
      Buffer.from([0, 0, 0, 255, 255]),
    ]);
    const next = openStream(3, { port: '8e' }, { first: false });
    expect(next).to.deep.equal(
      Buffer.concat([
        Buffer.from([0x80, 3, 0, 1, 0, 0, 0, 10 + stored.length, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0]),
        stored,
      ]),
    );
    const first = openStream(3, { port: '8e' }, { first: true });
    expect(first.toString('hex', 18, 24)).to.equal('78bbe3c6a7c2');
    expect(first.subarray(24)).to.deep.equal(next.subarray(18));
  });

  it('reads what comes in the same way however it is cut', () => {
    const sent = Buffer.concat([
      control(2, Buffer.from([0, 0, 0, 7, 0, 1, 2])),
      dataFrame(7, Buffer.from('some words')),
      control(4, Buffer.alloc(12)),
      pingFrame(2),
      endStream(5),
      resetStream(7),
      control(7, Buffer.alloc(8)),
    ]);
    const whole = heardOf([sent]);
    expect(
      whole.map((event) =>
        event.type === 'data' ? { ...event, bytes: String(event.bytes) } : event,
      ),
    ).to.deep.equal([
      { type: 'reply', stream: 7 },
      { type: 'data', stream: 7, bytes: 'some words', last: false },
      { type: 'ping', id: 2 },
      { type: 'data', stream: 5, bytes: '', last: true },
      { type: 'reset', stream: 7 },
      { type: 'go-away' },
    ]);
    const bytewise = heardOf([...sent].map((byte) => Buffer.of(byte)));
    expect(
      bytewise.flatMap((event) => (event.type === 'data' ? [...event.bytes] : [])),
    ).to.deep.equal([...Buffer.from('some words')]);
    expect(bytewise.filter(({ type }) => type !== 'data')).to.deep.equal(
      whole.filter(({ type }) => type !== 'data'),
    );
  });

  it('tells the end of a stream with its last byte, and not before', () => {
    const last = dataFrame(1, Buffer.from('abc'));
    last[4] = 1;
    const heard = heardOf([last.subarray(0, 9), last.subarray(9)]);
    expect(heard.map((event) => event.type === 'data' && event.last)).to.deep.equal([false, true]);
  });

  it('throws at what is no SPDY, and at frames that are too long or too short', () => {
    for (const bytes of [
      'HTTP/1.1 400 Bad Request\r\n\r\n'.replace('H', '\x88'),
      '\x80\x03\0\x02\0\xff\xff\xff',
      '\x80\x03\0\x06\0\0\0\x01\0',
    ]) {
      expect(() => heardOf([Buffer.from(bytes, 'latin1')])).to.throw();
    }
  });
});
