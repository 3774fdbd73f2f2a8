import { existsSync } from 'node:fs';
import { chromium, type Browser } from 'playwright-core';

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  existsSync,
);
/** Stop its own network requests. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Undefined if there is a browser. */
export const noChromium: string | undefined =
  CHROMIUM === undefined
    ? 'there is no chromium (script/bootstrap --tests installs it)'
    : undefined;

export const aChromium = (): Promise<Browser> =>
  chromium.launch({ executablePath: CHROMIUM ?? '', args: FLAGS });
