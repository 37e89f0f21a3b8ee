#!/bin/sh
# lab.sh PROGRAM TABLES: runs the papers' experiments, and puts their tables into the folder TABLES.
set -e
"$1" "$2"
# Debian's package libguava-java.
guava=/usr/share/java/guava.jar
folder=$(dirname "$0")
javac -d "$2/classes" -cp $guava "$folder/ExpiringCache.java"
# The heap is measured: collections leave nothing dead.
java -Xmx512m -XX:+UseSerialGC -XX:MarkSweepDeadRatio=0 -cp "$2/classes:$guava" ExpiringCache > "$2/expiring.csv"
