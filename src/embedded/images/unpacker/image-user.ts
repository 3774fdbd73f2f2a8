import { ImageRefused } from './image-refused.ts';
import type { ImageUser } from './orders.ts';

/** For images that name no user or root: sandboxes have no root user. */
export const SANDBOX_USER: ImageUser = { uid: 1_000, gid: 1_000, name: 'sandbox' };
const SANDBOX_HOME = '/home/sandbox';
/** E2B's programs call the user and the home so; the home is a link. */
const SECOND_NAME = 'user';
const SECOND_HOME = '/home/user';

const MAX_ID = 2 ** 31 - 1;

/**
 * `USER[:GROUP]`, names or numbers, by the image's own files. Throws ImageRefused for an unknown
 * name.
 */
export const imageUserOf = (text: string, passwd: string, group: string): ImageUser => {
  const [user = '', groupName] = text.split(':', 2);
  if (user === '' || user === 'root' || user === '0') return SANDBOX_USER;
  const entry = rows(passwd).find(
    ([name, , uid]) => name === user || (isNumber(user) && uid === user),
  );
  const uid = idOf(isNumber(user) ? user : entry?.[2], `the user ${JSON.stringify(user)}`);
  if (uid === 0) return SANDBOX_USER;
  const gid = groupName
    ? groupIdOf(groupName, group)
    : idOf(entry?.[3] ?? String(uid), `the group of the user ${JSON.stringify(user)}`);
  return { uid, gid: gid === 0 ? uid : gid, name: entry?.[0] ?? SANDBOX_USER.name };
};

const groupIdOf = (name: string, group: string): number =>
  idOf(
    isNumber(name) ? name : rows(group).find(([each]) => each === name)?.[2],
    `the group ${JSON.stringify(name)}`,
  );

/**
 * Returns the image's passwd, with a line for the sandbox's user added if it is missing, and one
 * for its second name `user` unless the image has a user of that name.
 */
export const passwdFor = ({ uid, gid, name }: ImageUser, passwd: string): string =>
  withLine(
    withLine(
      passwd,
      rows(passwd).some((row) => row[2] === String(uid)),
      `${name}:x:${uid}:${gid}:${name}:${SANDBOX_HOME}:/bin/sh`,
    ),
    name === SECOND_NAME || rows(passwd).some((row) => row[0] === SECOND_NAME),
    `${SECOND_NAME}:x:${uid}:${gid}:${SECOND_NAME}:${SECOND_HOME}:/bin/sh`,
  );

export const groupFor = ({ gid, name }: ImageUser, group: string): string =>
  withLine(
    group,
    rows(group).some((row) => row[2] === String(gid)),
    `${name}:x:${gid}:`,
  );

const withLine = (text: string, present: boolean, line: string): string =>
  present ? text : `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${line}\n`;

const rows = (text: string): readonly (readonly string[])[] =>
  text.split('\n').map((line) => line.split(':'));

const isNumber = (text: string): boolean => /^\d{1,10}$/.test(text);

const idOf = (text: string | undefined, what: string): number => {
  const id = text !== undefined && isNumber(text) ? Number(text) : Number.NaN;
  if (!(id >= 0 && id <= MAX_ID)) throw new ImageRefused(`${what} is not in the image`);
  return id;
};
