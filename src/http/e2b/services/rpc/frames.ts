import type { ConnectError } from '@connectrpc/connect';
import { createEndStreamSerialization, endStreamFlag } from '@connectrpc/connect/protocol-connect';

/** Flags and length. */
export const FRAME_HEAD_BYTES = 5;

/** `message` is ASCII. */
export const frameOf = (message: string, flags = 0): Buffer => {
  const frame = Buffer.allocUnsafe(FRAME_HEAD_BYTES + message.length);
  frame.writeUInt8(flags, 0);
  frame.writeUInt32BE(message.length, 1);
  frame.write(message, FRAME_HEAD_BYTES, 'latin1');
  return frame;
};

/** Undefined unless the body is a single frame without flags. */
export const onlyMessageOf = (body: Buffer): string | undefined =>
  body.length >= FRAME_HEAD_BYTES &&
  body[0] === 0 &&
  body.readUInt32BE(1) === body.length - FRAME_HEAD_BYTES
    ? body.toString('utf8', FRAME_HEAD_BYTES)
    : undefined;

const ends = createEndStreamSerialization(undefined);

export const lastFrame = (error?: ConnectError): Buffer => {
  const end = ends.serialize({ metadata: new Headers(), error });
  const frame = Buffer.alloc(FRAME_HEAD_BYTES + end.length);
  frame.writeUInt8(endStreamFlag, 0);
  frame.writeUInt32BE(end.length, 1);
  frame.set(end, FRAME_HEAD_BYTES);
  return frame;
};
